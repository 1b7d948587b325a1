// What Python itself costs a PyTorch DataLoader here, measured with the user's own interpreter by a
// small program of its standard library: starting a worker by fork, forkserver and spawn, and
// handing over a batch. Where torch can be imported its DataLoader runs too, without and with one
// worker, on the files at hand: what more workers do is then measured by emulation. One thread;
// children are ended with us.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::reports {

struct PythonCost {
  std::string version;      // "3.11.7 with torch 2.13.0"; empty: not measured
  std::string why_not;      // told then
  double batch_s = 0;       // a batch of two tensors to a worker and back, no samples in it
  double sample_s = 0;      // by one worker, all that its DataLoader does; 0: not measured
  double alone_s = 0;       // the same without workers
  int crowded = 0;          // twice as many workers as cores; 0: not measured
  double crowded_s = 0;     // of a core for a sample by so many
  std::string how;          // "torchvision": what makes that sample
  double more_s = 0;        // a sample takes so much longer than this program's
  double more_alone_s = 0;  // and without workers
  double more_crowded_s = 0;
  std::string method;                     // by which workers are started, "fork"
  std::map<std::string, double> start_s;  // a worker, by method; torch imported where it is there

  bool measured() const { return !version.empty(); }
  double worker_start_s() const;
};

// `method` empty: as that Python starts processes by itself. `check` is the script of check_script,
// empty without files to make samples of; `cores` are those that workers share, `crowded` as many
// workers as crowd them (0: none). Never throws for what Python does: why_not tells it, also beside
// what was measured before.
PythonCost measure_python(const std::string& python, const std::string& method,
                          const std::string& check, const std::string& folder, double cores,
                          int crowded);

// From what the two programs print. Throws InputError when it is something else.
PythonCost python_cost_from(const nlohmann::json& probe, const std::string& method);
void add_sample_cost(PythonCost& cost, const nlohmann::json& check, double cores);

nlohmann::ordered_json to_json(const PythonCost& cost);

}  // namespace howmany::reports
