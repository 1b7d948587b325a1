// SPDX-License-Identifier: Apache-2.0
// A fake libnccl whose ranks are threads of one process on the fake GPUs (fake_cuda.cpp).
//
// Calls. A call blocks its stream until the matching calls of all ranks are on theirs; then data
//   moves. Calls that do not match block until the communicator is aborted.
// Errors. Rejects memory that is not on the rank's GPU, a stream or current device of another GPU,
//   and a communicator that is not ready or destroyed.
#include "tests/fakes/fake_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/tensor/bf16.h"
#include "tests/fakes/fake_gpu.h"

namespace {

static_assert(howmany::kFakeRemoteError == ncclRemoteError);

enum class Op { all_reduce, reduce, broadcast, all_gather, reduce_scatter };

// These must be equal on all ranks.
struct Terms {
  Op op;
  size_t count;
  ncclDataType_t type;
  int with;      // the root or the reduction
  int root = 0;  // for a reduction to one rank
  bool operator==(const Terms&) const = default;
};

struct Arrival {
  Terms terms;
  const void* in;
  void* out;
};
struct Meeting {
  std::map<int, Arrival> here;
  bool done = false;
};
struct Message {
  void* memory;
  size_t bytes;
  std::shared_ptr<bool> done = std::make_shared<bool>(false);
};

struct Group {
  int size = 0;
  std::map<int, int> devices;  // by rank that joined
  std::map<int, Meeting> meetings;
  std::map<std::tuple<int, int, bool>, std::deque<Message>> mail;  // from, to, is a send
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0, device = 0;
  int calls = 0;  // collectives
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
};

namespace {

std::mutex mutex;  // guards all below; never held during calls of the GPUs
std::map<std::string, std::shared_ptr<Group>> groups;
std::set<ncclComm*> live;
howmany::FakeNccl told;

size_t width(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclBfloat16:
      return 2;
    case ncclFloat64:
    case ncclInt64:
      return 8;
    default:
      return 4;
  }
}

template <typename T>
void add(T& sum, T value, int op) {
  if (op == ncclSum) sum = static_cast<T>(sum + value);
  if (op == ncclMax) sum = std::max(sum, value);
  if (op == ncclMin) sum = std::min(sum, value);
}

// Reduces elements [begin, begin + count) over all ranks.
template <typename T>
std::vector<char> reduced(const Meeting& m, size_t begin, size_t count, int op) {
  std::vector<char> bytes(count * sizeof(T));
  T* const sums = reinterpret_cast<T*>(bytes.data());
  for (const auto& [rank, a] : m.here) {
    const T* const values = static_cast<const T*>(hm_fake_gpu_open(a.in)) + begin;
    for (size_t i = 0; i < count; ++i)
      rank == 0 ? void(sums[i] = values[i]) : add(sums[i], values[i], op);
  }
  return bytes;
}

std::vector<char> reduced(const Meeting& m, size_t begin, size_t count, const Terms& terms) {
  switch (terms.type) {
    case ncclFloat64:
      return reduced<double>(m, begin, count, terms.with);
    case ncclInt64:
      return reduced<int64_t>(m, begin, count, terms.with);
    case ncclInt32:
      return reduced<int32_t>(m, begin, count, terms.with);
    case ncclUint8:
      return reduced<uint8_t>(m, begin, count, terms.with);
    case ncclBfloat16:
      return reduced<howmany::Bf16>(m, begin, count, terms.with);
    default:
      return reduced<float>(m, begin, count, terms.with);
  }
}

std::vector<char> result_of(const Meeting& m, const Terms& t, int rank) {
  const size_t bytes = t.count * width(t.type);
  std::vector<char> result;
  const auto append = [&](const void* from) {
    const auto* const begin = static_cast<const char*>(hm_fake_gpu_open(from));
    result.insert(result.end(), begin, begin + bytes);
  };
  if (t.op == Op::broadcast) append(m.here.at(t.with).in);
  if (t.op == Op::all_gather)
    for (const auto& [from, a] : m.here) append(a.in);
  if (t.op == Op::all_reduce || (t.op == Op::reduce && rank == t.root))
    return reduced(m, 0, t.count, t);
  if (t.op == Op::reduce_scatter)
    return reduced(m, static_cast<size_t>(rank) * t.count, t.count, t);
  return result;
}

// Computes all results before it writes any, because calls may be in place.
void hold(Meeting& m, int size) {
  const Terms& terms = m.here.begin()->second.terms;
  const auto agrees = [&](const auto& arrival) { return arrival.second.terms == terms; };
  if (std::ssize(m.here) < size || !std::all_of(m.here.begin(), m.here.end(), agrees)) return;
  std::vector<std::vector<char>> results;
  for (int r = 0; r < size; ++r) results.push_back(result_of(m, terms, r));
  for (auto& [r, a] : m.here) {
    const std::vector<char>& result = results[static_cast<size_t>(r)];
    if (!result.empty()) std::memcpy(hm_fake_gpu_open(a.out), result.data(), result.size());
  }
  m.done = true;
  told.done += size;
}

void deliver(Group& group, int from, int to) {
  auto &sent = group.mail[{from, to, true}], &wanted = group.mail[{from, to, false}];
  while (!sent.empty() && !wanted.empty() && sent[0].bytes == wanted[0].bytes) {
    std::memcpy(hm_fake_gpu_open(wanted[0].memory), hm_fake_gpu_open(sent[0].memory),
                sent[0].bytes);
    *sent[0].done = *wanted[0].done = true;
    told.done += 2;
    sent.pop_front();
    wanted.pop_front();
  }
}

// An item on a stream: a collective, or grouped messages.
struct Standing {
  std::shared_ptr<Group> group;
  std::shared_ptr<bool> aborted;
  int rank, call;
  std::vector<Arrival> collective;
  std::vector<std::tuple<int, int, bool, Message>> messages;
  bool arrived = false;

  void arrive() {
    for (const Arrival& a : collective) {
      group->meetings[call].here.emplace(rank, a);
      hold(group->meetings[call], group->size);
    }
    for (const auto& [from, to, is_sent, message] : messages)
      group->mail[{from, to, is_sent}].push_back(message);
    for (const auto& [from, to, is_sent, message] : messages) deliver(*group, from, to);
  }
  bool finished() {
    const std::lock_guard lock(mutex);
    if (!*aborted && !std::exchange(arrived, true)) arrive();
    return *aborted || (std::ranges::all_of(
                            messages, [](const auto& m) { return *std::get<Message>(m).done; }) &&
                        (collective.empty() || group->meetings[call].done));
  }
};

struct Asked {
  std::unique_ptr<Standing> what;
  cudaStream_t stream = nullptr;
};
thread_local int depth = 0;  // of nested ncclGroupStart()
thread_local std::map<ncclComm*, Asked> together;

void put(Asked asked) {
  const auto done = [](void* with) {
    auto* const standing = static_cast<Standing*>(with);
    if (!standing->finished()) return false;
    delete standing;
    return true;
  };
  hm_fake_gpu_queue(asked.stream, done, asked.what.release());
}

ncclResult_t refuse() { return ++told.refused, ncclInvalidUsage; }

bool ready(ncclComm* comm) {
  return live.contains(comm) && std::ssize(comm->group->devices) == comm->group->size;
}

std::unique_ptr<Standing> standing(ncclComm* comm) {
  return std::unique_ptr<Standing>(new Standing{comm->group, comm->aborted, comm->rank, 0, {}, {}});
}

// Returns true if NCCL could use these arguments.
bool usable(ncclComm* comm, cudaStream_t stream, const void* memory, size_t bytes) {
  int current = -1;
  cudaGetDevice(&current);
  const int holding = hm_fake_gpu_holding(memory, bytes), streams = hm_fake_gpu_of(stream);
  const std::lock_guard lock(mutex);
  return ready(comm) && current == comm->device && holding == comm->device &&
         streams == comm->device;
}

bool is_live(ncclComm* comm) {
  const std::lock_guard lock(mutex);
  return live.contains(comm);
}

ncclResult_t collective(ncclComm* comm, cudaStream_t stream, const Arrival& a) {
  if (!is_live(comm)) return refuse();
  const size_t bytes = a.terms.count * width(a.terms.type);
  const size_t all = bytes * static_cast<size_t>(comm->group->size);
  if (!usable(comm, stream, a.in, a.terms.op == Op::reduce_scatter ? all : bytes) ||
      ((a.terms.op != Op::reduce || a.terms.root == comm->rank) &&
       !usable(comm, stream, a.out, a.terms.op == Op::all_gather ? all : bytes)))
    return refuse();
  auto one = standing(comm);
  one->call = comm->calls++;
  one->collective = {a};
  ++told.asked;
  put({std::move(one), stream});
  return ncclSuccess;
}

ncclResult_t message(ncclComm* comm, cudaStream_t stream, int peer, bool is_sent, Message what) {
  if (!usable(comm, stream, what.memory, what.bytes)) return refuse();
  ncclGroupStart();
  Asked& asked = together[comm];
  if (!asked.what) asked = {standing(comm), stream};
  asked.what->messages.emplace_back(is_sent ? comm->rank : peer, is_sent ? peer : comm->rank,
                                    is_sent, std::move(what));
  ++told.asked;
  return ncclGroupEnd();
}

}  // namespace

extern "C" {

howmany::FakeNccl* hm_fake_nccl() { return &told; }

ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "a remote error of the fake NCCL" : "the fake NCCL refuses";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> last = 0;
  *id = {};
  return std::strcpy(id->internal, std::to_string(++last).c_str()), ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  int device = -1;
  cudaGetDevice(&device);
  const std::lock_guard lock(mutex);
  std::shared_ptr<Group>& group = groups[id.internal];
  if (!group) group = std::make_shared<Group>();
  group->size = size;
  for (const auto& [other, taken] : group->devices)
    if (taken == device) return refuse();  // "Duplicate GPU detected"
  group->devices[rank] = device;
  *made = new ncclComm{group, rank, device};
  live.insert(*made);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  if (!live.contains(comm)) return refuse();
  *state = static_cast<ncclResult_t>(told.async_error.load());
  if (*state == ncclSuccess && !ready(comm)) *state = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  if (live.erase(comm) == 0) return refuse();
  *comm->aborted = true;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return is_live(comm) ? ncclSuccess : refuse(); }

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {{Op::all_reduce, count, type, op}, in, out});
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {{Op::broadcast, count, type, root}, in, out});
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {{Op::all_gather, count, type, 0}, in, out});
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {{Op::reduce_scatter, count, type, op}, in, out});
}

ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, {{Op::reduce, count, type, op, root}, in, out});
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return message(comm, stream, peer, true, {const_cast<void*>(from), count * width(type)});
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message(comm, stream, peer, false, {to, count * width(type)});
}
ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (auto& [comm, asked] : std::exchange(together, {})) put(std::move(asked));
  return ncclSuccess;
}

}  // extern "C"
