// SPDX-License-Identifier: Apache-2.0
// `howmany help`: topics, all commands, or the help of one.
#pragma once

namespace CLI {
class App;
}

namespace howmany::reports {

void add_help(CLI::App& sub, int& code);

}  // namespace howmany::reports
