// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/gpu/copies.h"
#include "core/gpu/event.h"
#include "core/gpu/fallbacks.h"
#include "core/gpu/fill.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"
#include "core/gpu/stream.h"
#include "core/gpu/tuning.h"

namespace howmany::gpu {
namespace {

[[noreturn]] void refuse() { throw Error("[gpu] " + unavailable()); }

}  // namespace

int count() { return 0; }
std::string unavailable() { return "this build has no CUDA"; }
std::string pci_address(int) { return ""; }
std::string name(int) { refuse(); }
std::string uuid(int) { refuse(); }
std::shared_ptr<void> allocate(int64_t, int) { refuse(); }
void copy(void*, Device, const void*, Device, int64_t) { refuse(); }
void copy_rows(const Rows&, int) { refuse(); }
void zero(void*, int, int64_t) { refuse(); }
void synchronize(int) { refuse(); }
void synchronize_used() {}
std::shared_ptr<void> record_event(int) { refuse(); }
MemoryUse memory_use(int) { return {}; }
void reset_peak_memory(int) {}
void release_cached_memory(int) {}
std::vector<Fallback> fallbacks() { return {}; }
std::vector<EngineChoice> engines() { return {}; }
std::vector<int64_t> tuning() { return {}; }
void use_tuning(std::span<const int64_t>) {}
std::string tuning_libraries() { return ""; }
void convert(void*, Dtype, const void*, Dtype, int64_t, int) { refuse(); }
void fill_uniform(float*, int64_t, double, double, const Rng&, int) { refuse(); }

struct Fetch::Block {};
TimedEvent::TimedEvent(int) { refuse(); }
void TimedEvent::wait() const { refuse(); }
bool TimedEvent::occurred() const { refuse(); }
double TimedEvent::seconds_since(const TimedEvent&) const { refuse(); }
Fetch::Fetch(const void*, int64_t, int) { refuse(); }
const void* Fetch::wait() const { refuse(); }

struct Graph::Kept {};
Graph::Graph(int, const std::function<void()>&) { refuse(); }
void Graph::launch() { refuse(); }
bool capturing() { return false; }
void keep_for_graph(std::shared_ptr<const void>, const void*) {}
void outside_graph(std::function<void()> call) { call(); }

void wait_for(int, const std::shared_ptr<void>&) { refuse(); }
void finish(const std::shared_ptr<void>&) { refuse(); }
std::shared_ptr<void> allocate_pinned(int64_t, int) { refuse(); }
Stream::Stream(int index) : index_(index) { refuse(); }
Stream::~Stream() = default;
void Stream::copy_in(void*, const void*, int64_t) { refuse(); }
void Stream::copy_out(void*, const void*, int64_t) { refuse(); }
void Stream::wait(const std::shared_ptr<void>&) { refuse(); }
std::shared_ptr<void> Stream::record_event() const { refuse(); }
void Stream::finish() const { refuse(); }
void Stream::synchronize() const { refuse(); }

HostBlock::HostBlock(HostMemory kind, int64_t, int index) : kind_(kind), index_(index) { refuse(); }
HostBlock::~HostBlock() = default;
bool can_reach(int, int) { refuse(); }
struct Copier::Streams {};
Copier::Copier(int index) : index_(index) { refuse(); }
Copier::~Copier() = default;
void Copier::copy(const Copy&) { refuse(); }
double Copier::seconds_alone(const Copy&) { refuse(); }
double Copier::seconds_together(const Copy&, int, const Copy*) { refuse(); }

}  // namespace howmany::gpu
