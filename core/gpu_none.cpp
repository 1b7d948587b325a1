#include "core/error.h"
#include "core/gpu.h"

namespace howmany::gpu {
namespace {

[[noreturn]] void refuse() { throw Error("[gpu] " + unavailable()); }

}  // namespace

int count() { return 0; }
std::string unavailable() { return "this build has no CUDA"; }
void* allocate(int64_t, int) { refuse(); }
void release(void*, int) noexcept {}
void copy(void*, Device, const void*, Device, int64_t) { refuse(); }
void zero(void*, int, int64_t) { refuse(); }
void synchronize(int) { refuse(); }
std::shared_ptr<void> mark(int) { refuse(); }
MemoryUse memory_use(int) { return {}; }
void release_cached_memory(int) {}
void convert(void*, Dtype, const void*, Dtype, int64_t, int) { refuse(); }

struct Fetch::Block {};
Moment::Moment(int) { refuse(); }
void Moment::wait() const { refuse(); }
double Moment::seconds_since(const Moment&) const { refuse(); }
Fetch::Fetch(const void*, int64_t, int) { refuse(); }
const void* Fetch::wait() const { refuse(); }

struct Graph::Kept {};
Graph::Graph(int, const std::function<void()>&) { refuse(); }
void Graph::launch() { refuse(); }
bool capturing() { return false; }
void keep_for_graph(std::shared_ptr<const void>, const void*) {}

}  // namespace howmany::gpu
