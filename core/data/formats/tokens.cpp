// SPDX-License-Identifier: Apache-2.0
// A flat file of token ids, as nanoGPT writes it, or llm.c with a header. Sample i is the tokens
// [i T, i T + T). Its labels are the tokens that follow each.
#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/formats/mapped_file.h"

namespace howmany {
namespace {

// The header of llm.c's files: 256 integers of 32 bits, of which three are used.
constexpr int64_t kHeaderBytes = 1024;
constexpr int32_t kTokens16 = 20240520, kTokens32 = 20240801;
constexpr int32_t kMaxVersion = 100;

struct TokenHeader {
  int32_t kind = 0, version = 0, tokens = 0;
};

// Returns nullopt if the file has none. llm.c's other files (models, tokenizers) have other dates
// as their kind.
std::optional<TokenHeader> header_of(const MappedFile& file) {
  TokenHeader header;
  if (file.size() < kHeaderBytes) return {};
  std::memcpy(&header, file.bytes(0, sizeof header).data(), sizeof header);
  const bool date = header.kind / 10000 >= 2024 && header.kind / 10000 <= 2030;
  if (!date || header.version < 1 || header.version > kMaxVersion) return {};
  HM_ENSURE(header.kind == kTokens16 || header.kind == kTokens32,
            "{}: a file of llm.c of kind {}, and token files are of {} (16 bits) or {} (32 bits)",
            file.path(), header.kind, kTokens16, kTokens32);
  const int64_t bytes = header.kind == kTokens16 ? 2 : 4;
  HM_ENSURE(header.tokens == (file.size() - kHeaderBytes) / bytes,
            "{}: its header of llm.c announces {} tokens and {} are there: write it again",
            file.path(), header.tokens, (file.size() - kHeaderBytes) / bytes);
  return header;
}

template <class Id>
class Tokens final : public Dataset {
 public:
  // The tokens begin at `offset`.
  Tokens(std::unique_ptr<MappedFile> file, int64_t offset, const DataOptions& options)
      : file_(std::move(file)),
        offset_(offset),
        sequence_(options.sequence),
        vocabulary_(options.vocabulary) {
    const int64_t bytes = file_->size() - offset_;
    HM_ENSURE(bytes % kBytes == 0,
              "{}: {} bytes are no whole number of {}-bit tokens (16 bits a token in *.bin and "
              "*.u16, 32 in *.u32)",
              file_->path(), bytes, 8 * kBytes);
    size_ = (bytes / kBytes - 1) / sequence_;
    HM_ENSURE(size_ >= 1,
              "{}: {} tokens of {} bits are too few for one sequence of {} and the token after it",
              file_->path(), bytes / kBytes, 8 * kBytes, sequence_);
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
    const auto from = file_->bytes(offset_ + index * sequence_ * kBytes, (sequence_ + 1) * kBytes);
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
    return fmt::format("{} sequences of {} tokens of {} bits in {}", size_, sequence_, 8 * kBytes,
                       file_->path());
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
  int64_t offset_, sequence_, vocabulary_, size_ = 0;
};

}  // namespace

std::optional<OpenedData> formats::tokens(const std::string& path, const DataOptions& options) {
  const std::string extension = extension_of(path);
  if (extension != ".u32" && extension != ".bin" && extension != ".u16") return {};
  HM_REQUIRE(options.sequence >= 1 && options.sequence <= 1 << 24, "[tokens] sequences of {}",
             options.sequence);
  auto file = std::make_unique<MappedFile>(path);
  OpenedData opened;
  const std::optional<TokenHeader> header = header_of(*file);
  const int64_t offset = header ? kHeaderBytes : 0;
  if (header ? header->kind == kTokens32 : extension == ".u32")
    opened.dataset = std::make_unique<Tokens<uint32_t>>(std::move(file), offset, options);
  else
    opened.dataset = std::make_unique<Tokens<uint16_t>>(std::move(file), offset, options);
  if (extension == ".bin" && !header)
    opened.notes.emplace_back(
        "without a header of llm.c, .bin is read as 16 bits a token, as of nanoGPT (rename it to "
        ".u32 for 32)");
  opened.files = {path};
  opened.listed = opened.dataset->size();
  return opened;
}

}  // namespace howmany
