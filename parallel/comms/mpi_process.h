// MPI in this process: started once, for all groups, and ended with the process. It is asked for
// MPI_THREAD_SERIALIZED, which every MPI since 2005 grants, and all calls are made under lock(),
// from whichever thread; only nonblocking ones are made, so nobody holds the lock for long.
//
// Ranks also tell each other here, beside the data, that they gave a group up: MPI itself has no
// word for that. Under mpirun a rank that dies is told by the exit file that howmany's own launcher
// writes (see mpirun.cpp); MPI would only fall silent. Thread-safe.
#pragma once

#include <mpi.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace howmany {

// Throws EngineError with MPI's text unless `code` is MPI_SUCCESS.
void check_mpi(int code);

class MpiProcess {
 public:
  // Starts MPI on the first call. Throws EngineError when it grants no thread level that will do,
  // std::invalid_argument when no mpirun or srun started this process.
  static MpiProcess& get();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int most_tag() const { return most_tag_; }
  std::map<std::string, std::string> details() const;

  enum class Word : int { left, failed, aborted };
  struct Notice {
    int from = 0;  // rank in MPI_COMM_WORLD
    Word word = Word::left;
    int64_t turn = 0;  // collectives of the group that `from` had completed
    std::string why;
  };
  // To the ranks `to` of MPI_COMM_WORLD that share the group. Does not wait for them.
  void tell(uint64_t group, const std::vector<int>& to, Word word, int64_t turn,
            std::string_view why) noexcept;
  // Everything told about the group until now.
  std::vector<Notice> heard(uint64_t group);

  // Whether rank `r` of MPI_COMM_WORLD ended, as far as the launcher tells.
  bool has_ended(int r) const;
  // MPI may still write into these, so they live on; and MPI cannot be ended in good order any
  // more, which would wait for the others.
  void abandon(std::initializer_list<const Tensor*> buffers);

 private:
  MpiProcess();
  ~MpiProcess();
  void take_in();

  struct Message {
    uint64_t group;
    int64_t turn;
    int32_t word;
    char why[236];
  };
  struct Outgoing {
    MPI_Request request;
    Message message;
  };

  mutable std::mutex mutex_;
  int rank_ = 0, size_ = 1, level_ = 0, most_tag_ = 32'767;
  MPI_Comm words_ = MPI_COMM_NULL;
  std::map<uint64_t, std::vector<Notice>> notices_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<Tensor> abandoned_;
  bool spoiled_ = false;
  std::string exits_;  // folder of the exit files; empty when there are none
};

}  // namespace howmany
