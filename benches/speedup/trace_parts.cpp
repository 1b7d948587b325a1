// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/trace_parts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "parallel/launch/program_id.h"

namespace howmany::benches {
namespace {

constexpr size_t kBarriers = 8;
constexpr int64_t kAtOnce = int64_t{16} << 20;  // maximum bytes of a message

Tensor all_gathered(Comm& comm, const std::vector<int64_t>& own) {
  const auto count = static_cast<int64_t>(own.size());
  Tensor all = Tensor::empty({comm.size() * count}, Dtype::i64);
  comm.all_gather(Tensor::from(own, {count}), all);
  return all;
}

int64_t reduced(Comm& comm, int64_t value, ReduceOp op) {
  const Tensor all = Tensor::from<int64_t>({value}, {1});
  comm.all_reduce(all, op);
  return all.data<int64_t>()[0];
}

int64_t of_rank_0(Comm& comm, int64_t value) {
  const Tensor told = Tensor::from<int64_t>({value}, {1});
  comm.broadcast(told, 0);
  return told.data<int64_t>()[0];
}

struct Barrier {
  int64_t left = 0, took = 0;
};

Barrier timed_barrier(Comm& comm, const std::function<int64_t()>& now) {
  const int64_t came = now();
  comm.barrier();
  const int64_t left = now();
  return {left, left - came};
}

void send_to_rank_0(Comm& comm, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t part = std::min(bytes.size() - at, static_cast<size_t>(kAtOnce));
    Tensor message = Tensor::empty({static_cast<int64_t>(part)}, Dtype::u8);
    std::memcpy(message.mutable_raw(), bytes.data() + at, part);
    comm.send(message, 0);
    at += part;
  }
}

std::string receive_from(Comm& comm, int rank, int64_t size) {
  std::string bytes;
  while (static_cast<int64_t>(bytes.size()) < size) {
    const int64_t part = std::min(size - static_cast<int64_t>(bytes.size()), kAtOnce);
    const Tensor message = Tensor::empty({part}, Dtype::u8);
    comm.receive(message, rank);
    bytes.append(static_cast<const char*>(message.raw()), static_cast<size_t>(part));
  }
  return bytes;
}

}  // namespace

ClockOffset clock_offset(Comm& comm, const std::function<int64_t()>& now) {
  std::array<Barrier, kBarriers> barriers;
  for (Barrier& b : barriers) b = timed_barrier(comm, now);
  Tensor took = Tensor::empty({static_cast<int64_t>(kBarriers)}, Dtype::i64);
  std::ranges::transform(barriers, took.mutable_data<int64_t>(), &Barrier::took);
  comm.all_reduce(took, ReduceOp::max);
  const auto longest = took.values<int64_t>();
  const auto best = std::ranges::min_element(longest) - longest.begin();
  const int64_t left = barriers[static_cast<size_t>(best)].left, within = longest[best];
  const int64_t ahead = left - of_rank_0(comm, left);
  return std::abs(ahead) <= within ? ClockOffset{} : ClockOffset{ahead, within};
}

bool leads_process(Comm& comm) {
  const auto host = static_cast<int64_t>(std::hash<std::string>{}(host_name()));
  const Tensor all = all_gathered(comm, {host, getpid()});
  const auto seats = all.values<int64_t>();
  for (int64_t rank = 0; rank < comm.rank(); ++rank)
    if (seats[2 * rank] == host && seats[2 * rank + 1] == getpid()) return false;
  return true;
}

int64_t least_of(Comm& comm, int64_t value) { return reduced(comm, value, ReduceOp::min); }
int64_t sum_of(Comm& comm, int64_t value) { return reduced(comm, value, ReduceOp::sum); }

void bring_to_rank_0(Comm& comm, const std::string& bytes,
                     const std::function<void(const std::string&)>& take) {
  const Tensor all = all_gathered(comm, {static_cast<int64_t>(bytes.size())});
  if (comm.rank() != 0) return send_to_rank_0(comm, bytes);
  if (!bytes.empty()) take(bytes);
  for (int rank = 1; rank < comm.size(); ++rank)
    if (const int64_t size = all.data<int64_t>()[rank]; size > 0)
      take(receive_from(comm, rank, size));
}

}  // namespace howmany::benches
