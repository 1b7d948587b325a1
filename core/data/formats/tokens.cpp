// SPDX-License-Identifier: Apache-2.0
// A flat file of token ids, as prepared by nanoGPT and others. Sample i is the tokens
// [i T, i T + T). Its labels are the tokens that follow each.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/formats/mapped_file.h"

namespace howmany {
namespace {

template <class Id>
class Tokens final : public Dataset {
 public:
  Tokens(std::unique_ptr<MappedFile> file, int64_t sequence, int64_t vocabulary)
      : file_(std::move(file)), sequence_(sequence), vocabulary_(vocabulary) {
    HM_ENSURE(file_->size() % kBytes == 0, "{}: {} bytes are no whole number of {}-bit tokens",
              file_->path(), file_->size(), 8 * kBytes);
    size_ = (file_->size() / kBytes - 1) / sequence_;
    HM_ENSURE(size_ >= 1, "{}: {} tokens are too few for one sequence of {} and the token after it",
              file_->path(), file_->size() / kBytes, sequence_);
  }

  int64_t size() const override { return size_; }
  SampleSpec spec() const override {
    constexpr int64_t kAll = int64_t{1} << (8 * kBytes);
    return {.x = {sequence_},
            .x_dtype = Dtype::i64,
            .y = {sequence_},
            .y_dtype = Dtype::i64,
            .vocabulary = vocabulary_ > 0 ? vocabulary_ : kAll};
  }

  void get(int64_t index, uint64_t, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size_, "[tokens] sample {} of {}", index, size_);
    const auto from = file_->bytes(index * sequence_ * kBytes, (sequence_ + 1) * kBytes);
    auto* const ids = static_cast<int64_t*>(x);
    auto* const next = static_cast<int64_t*>(y);
    int64_t last = id(from, 0), largest = last;
    for (int64_t i = 0; i < sequence_; ++i) {
      ids[i] = last;
      next[i] = last = id(from, i + 1);
      largest = std::max(largest, last);
    }
    HM_ENSURE(vocabulary_ == 0 || largest < vocabulary_,
              "{}: token id {}, the vocabulary has {} (16 bits a token in *.bin and *.u16, 32 in "
              "*.u32)",
              name_of(index), largest, vocabulary_);
  }

  std::string describe() const override {
    return fmt::format("{} sequences of {} tokens in {}", size_, sequence_, file_->path());
  }
  std::string name_of(int64_t index) const override {
    return fmt::format("{} token {}", file_->path(), index * sequence_);
  }

 private:
  static constexpr int64_t kBytes = sizeof(Id);

  static int64_t id(std::span<const std::byte> from, int64_t place) {
    Id value;
    std::memcpy(&value, from.data() + place * kBytes, sizeof value);
    return value;
  }

  std::unique_ptr<MappedFile> file_;
  int64_t sequence_, vocabulary_, size_ = 0;
};

}  // namespace

std::optional<OpenedData> formats::tokens(const std::string& path, const DataOptions& options) {
  const std::string extension = std::filesystem::path(path).extension().string();
  const bool wide = extension == ".u32";
  if (!wide && extension != ".bin" && extension != ".u16") return {};
  HM_REQUIRE(options.sequence >= 1 && options.sequence <= 1 << 24, "[tokens] sequences of {}",
             options.sequence);
  auto file = std::make_unique<MappedFile>(path);
  OpenedData opened;
  if (wide)
    opened.dataset =
        std::make_unique<Tokens<uint32_t>>(std::move(file), options.sequence, options.vocabulary);
  else
    opened.dataset =
        std::make_unique<Tokens<uint16_t>>(std::move(file), options.sequence, options.vocabulary);
  opened.files = {path};
  opened.listed = opened.dataset->size();
  return opened;
}

}  // namespace howmany
