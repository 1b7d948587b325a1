// SPDX-License-Identifier: Apache-2.0
// The commands `compare`, `gate` and `history`.
#pragma once

namespace CLI {
class App;
}

namespace howmany::reports {

// Each adds options to the subcommand. If it runs, it sets `code`, which must outlive `sub`.
void add_compare(CLI::App& sub, int& code);
void add_gate(CLI::App& sub, int& code);
void add_history(CLI::App& sub, int& code);

}  // namespace howmany::reports
