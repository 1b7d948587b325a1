// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 with one function: the version of a driver of CUDA 12.4.

extern "C" int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
