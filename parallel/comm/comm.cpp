// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/comm.h"

#include <utility>

#include "parallel/comm/call_runner.h"

namespace howmany {

Comm::Comm(std::unique_ptr<CommEngine> engine)
    : engine_(std::move(engine)),
      rank_(engine_->rank()),
      size_(engine_->size()),
      calls_(std::make_unique<CallRunner>(*engine_)) {}

Comm::~Comm() = default;

std::string_view Comm::backend() const { return engine_->name(); }
std::map<std::string, std::string> Comm::details() const { return engine_->details(); }
Device Comm::native_device() const { return engine_->native_device(); }
void Comm::set_timeout(std::chrono::milliseconds timeout) { calls_->set_timeout(timeout); }
std::chrono::milliseconds Comm::timeout() const { return calls_->timeout(); }
void Comm::finish() { calls_->finish(); }
void Comm::abort(std::string_view why) { calls_->abort(why); }
bool Comm::failed() const { return calls_->failed(); }

}  // namespace howmany
