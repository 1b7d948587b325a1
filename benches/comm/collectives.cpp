// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "benches/common/verify.h"
#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany::benches {
namespace {

bool one_buffer(std::string_view op) { return op == "all_reduce" || op == "broadcast"; }
// Operations whose buffers have equal sizes.
bool whole(std::string_view op) { return one_buffer(op) || op == "reduce" || op == "send_recv"; }

// The factors 7, 13 and 5 of sent() divide neither this prime nor the periods of sums, so values
// differ between elements, ranks and rounds. It is exact in one byte and in bf16.
constexpr int kFillIn = 251;  // no pattern contains it

// The longest period for which sums of `ranks` values below it stay below kFillIn.
int period_of_sums(int ranks) {
  constexpr std::array kPrimes = {61, 59, 53, 47, 43, 41, 37, 31, 29, 23, 19, 17, 11, 3};
  const auto* const found =
      std::ranges::find_if(kPrimes, [&](int p) { return ranks * (p - 1) < kFillIn; });
  return found == kPrimes.end() ? 2 : *found;
}

using Values = std::function<double(int64_t index)>;

// A table of many periods. The pattern repeats, so a table is faster than arithmetic for every
// element. A long table fills and compares at memory speed.
template <typename T>
std::vector<T> table_of(const Values& values, int64_t period, int64_t count) {
  constexpr int64_t kLong = 4096;
  std::vector<T> table;
  for (int64_t i = 0; i < period; ++i) table.push_back(static_cast<T>(values(i)));
  const int64_t whole = (std::min(kLong, count) + period - 1) / period * period;
  while (std::ssize(table) < whole)
    table.push_back(table[table.size() - static_cast<size_t>(period)]);
  return table;
}

template <typename T>
void write(Tensor& t, int64_t begin, int64_t count, const Values& values, int64_t period) {
  const std::vector<T> table = table_of<T>(values, period, count);
  T* const out = t.mutable_data<T>() + begin;
  for (int64_t i = 0; i < count; i += std::ssize(table))
    std::copy_n(table.begin(), std::min(std::ssize(table), count - i), out + i);
}

template <typename T>
std::optional<WrongElement> compare(const Tensor& t, int64_t begin, int64_t count,
                                    const Values& values, int64_t period) {
  const std::vector<T> table = table_of<T>(values, period, count);
  const T* const seen = t.data<T>() + begin;
  for (int64_t i = 0; i < count; i += std::ssize(table)) {
    const auto n = static_cast<size_t>(std::min(std::ssize(table), count - i));
    if (std::memcmp(seen + i, table.data(), n * sizeof(T)) == 0) continue;
    const auto [wrong, right] = std::mismatch(seen + i, seen + i + n, table.begin());
    if (wrong == seen + i + n) continue;  // a zero of the other sign
    return WrongElement{"", begin + (wrong - seen), static_cast<double>(*right),
                        static_cast<double>(*wrong)};
  }
  return {};
}

// `body` writes all of t, or a host tensor that is then copied to t.
template <typename Body>
void edit_on_host(Tensor& t, const Body& body) {
  if (t.device().type == DeviceType::cpu) return body(t);
  Tensor host = Tensor::empty(t.shape(), t.dtype());
  body(host);
  t.copy_from(host);
}

template <typename Body>
auto with_type(Dtype dtype, const Body& body) {
  switch (dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return body(type{});
    HM_DTYPES(X)
#undef X
  }
  throw std::logic_error("unknown dtype");
}

}  // namespace

std::vector<std::string_view> collective_names() {
#define X(name, what) #name,
  return {HM_COLLECTIVES(X)};
#undef X
}

std::optional<double> bus_factor(std::string_view op, int ranks) {
  if (ranks < 2) return {};
  const double others = (ranks - 1.0) / ranks;
  if (op == "all_reduce") return 2 * others;
  return whole(op) ? 1 : others;
}

int64_t counted_bytes(std::string_view op, Dtype dtype, int64_t bytes, int ranks) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t parts = whole(op) ? 1 : ranks;
  return std::max<int64_t>(1, bytes / (size * parts)) * size * parts;
}

int64_t buffer_bytes(std::string_view op, int64_t bytes, int ranks) {
  if (one_buffer(op)) return bytes;
  return op == "all_to_all" || whole(op) ? 2 * bytes : bytes + bytes / ranks;
}

Collective::Collective(std::string_view op, Dtype dtype, int64_t bytes, Comm& comm, Device where)
    : op_(op), comm_(comm) {
  const auto names = collective_names();
  if (std::ranges::find(names, op) == names.end())
    throw std::invalid_argument(unknown_name("operation", op, names));
  HM_REQUIRE(op != "send_recv" || comm.size() > 1, "send_recv needs two ranks");
  const int n = comm.size();
  part_ = counted_bytes(op, dtype, bytes, n) / static_cast<int64_t>(size_of(dtype));
  if (!whole(op_)) part_ /= n;
  period_ = op_.find("reduce") == op_.npos ? kFillIn : period_of_sums(n);
  const bool sends_whole = op_ == "reduce_scatter" || op_ == "scatter" || op_ == "all_to_all";
  const bool receives_whole = op_ == "all_gather" || op_ == "gather" || op_ == "all_to_all";
  send_ = Tensor::empty({sends_whole ? part_ * n : part_}, dtype, where);
  if (one_buffer(op_)) return;
  receive_ = Tensor::empty({receives_whole ? part_ * n : part_}, dtype, where);
}

double Collective::sent(int rank, int64_t index, int round) const {
  return static_cast<double>((index * 7 + rank * 13 + round * 5) % period_);
}

double Collective::summed(int64_t index, int round) const {
  double sum = 0;
  for (int r = 0; r < comm_.size(); ++r) sum += sent(r, index, round);
  return sum;
}

void Collective::fill(int round) {
  zeros_ = false;
  with_type(send_.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (receive_)
      edit_on_host(receive_,
                   [](Tensor& t) { std::ranges::fill(t.mutable_values<T>(), T{kFillIn}); });
    edit_on_host(send_, [&](Tensor& t) {
      write<T>(
          t, 0, t.numel(), [&](int64_t i) { return sent(comm_.rank(), i, round); }, period_);
    });
  });
}

void Collective::fill_for_timing(int round) {
  fill(round);
  if (op_ != "all_reduce") return;
  send_.zero();
  zeros_ = true;
}

void Collective::run() {
  const int last = comm_.size() - 1;
  if (op_ == "all_reduce") return comm_.all_reduce(send_);
  if (op_ == "all_gather") return comm_.all_gather(send_, receive_);
  if (op_ == "reduce_scatter") return comm_.reduce_scatter(send_, receive_);
  if (op_ == "broadcast") return comm_.broadcast(send_, 0);
  if (op_ == "reduce") return comm_.reduce(send_, receive_, 0);
  if (op_ == "gather") return comm_.gather(send_, receive_, 0);
  if (op_ == "scatter") return comm_.scatter(send_, receive_, 0);
  if (op_ == "all_to_all") return comm_.all_to_all(send_, receive_);
  if (comm_.rank() == 0) {
    comm_.send(send_, last);
    comm_.receive(receive_, last);
  } else if (comm_.rank() == last) {
    comm_.receive(receive_, 0);
    comm_.send(receive_, 0);
  }
}

bool Collective::receives() const {
  if (op_ == "gather" || op_ == "reduce") return comm_.rank() == 0;
  return op_ != "send_recv" || comm_.rank() == 0 || comm_.rank() == comm_.size() - 1;
}

std::optional<WrongElement> Collective::first_wrong(int round) const {
  if (!receives()) return {};
  const Tensor seen = (receive_ ? receive_ : send_).to(Device{});
  const int64_t mine = comm_.rank() * part_;
  const auto part = [&](int from, const Values& values) {
    return with_type(seen.dtype(), [&](auto zero) {
      return compare<decltype(zero)>(seen, from * part_, part_, values, period_);
    });
  };
  if (zeros_) return part(0, [](int64_t) { return 0; });
  if (op_ == "all_reduce" || op_ == "reduce")
    return part(0, [&](int64_t i) { return summed(i, round); });
  if (op_ == "reduce_scatter") return part(0, [&](int64_t i) { return summed(mine + i, round); });
  if (op_ == "scatter") return part(0, [&](int64_t i) { return sent(0, mine + i, round); });
  if (one_buffer(op_) || op_ == "send_recv")
    return part(0, [&](int64_t i) { return sent(0, i, round); });
  const int64_t first = op_ == "all_to_all" ? mine : 0;
  for (int r = 0; r < comm_.size(); ++r)
    if (const auto wrong = part(r, [&](int64_t i) { return sent(r, first + i, round); }))
      return wrong;
  return {};
}

void Collective::check(int round) {
  const auto wrong = first_wrong(round);
  const Tensor mine =
      wrong ? Tensor::from<double>(
                  {1, static_cast<double>(wrong->index), wrong->expected, wrong->seen}, {4})
            : Tensor::zeros({4}, Dtype::f64);
  Tensor all = Tensor::empty({4 * comm_.size()}, Dtype::f64);
  comm_.all_gather(mine, all);
  for (int r = 0; r < comm_.size(); ++r) {
    const double* const element = all.data<double>() + 4 * r;
    if (element[0] == 0) continue;
    throw WrongData(
        fmt::format("wrong data: {} over {}: rank {} of {}, element {}: {} instead of {}", op_,
                    comm_.backend(), r, comm_.size(), element[1], element[3], element[2]));
  }
}

}  // namespace howmany::benches
