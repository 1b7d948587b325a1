// SPDX-License-Identifier: Apache-2.0
// What Debian 12's static libraries ask for and glibc 2.28 does not have. Only the programs of
// scripts/bundle have it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32: true while the process has one thread. False is always right: libstdc++ then counts
// references with atomic operations.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.30.
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// glibc 2.32: names of the signals that end programs.
HIDDEN const char* sigabbrev_np(int signal) {
  switch (signal) {
    case SIGHUP: return "HUP";
    case SIGINT: return "INT";
    case SIGQUIT: return "QUIT";
    case SIGILL: return "ILL";
    case SIGTRAP: return "TRAP";
    case SIGABRT: return "ABRT";
    case SIGBUS: return "BUS";
    case SIGFPE: return "FPE";
    case SIGKILL: return "KILL";
    case SIGUSR1: return "USR1";
    case SIGSEGV: return "SEGV";
    case SIGUSR2: return "USR2";
    case SIGPIPE: return "PIPE";
    case SIGALRM: return "ALRM";
    case SIGTERM: return "TERM";
    case SIGXCPU: return "XCPU";
    case SIGXFSZ: return "XFSZ";
    case SIGSYS: return "SYS";
    default: return NULL;
  }
}

// glibc 2.36, for std::random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

// glibc 2.30. The wait is on the clock that pthread_cond_timedwait() uses, CLOCK_REALTIME, as
// libstdc++ does if the function is absent: a clock that is set changes the time of the wait.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* until) {
  struct timespec now, real, end;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  end.tv_sec = real.tv_sec + until->tv_sec - now.tv_sec;
  end.tv_nsec = real.tv_nsec + until->tv_nsec - now.tv_nsec;
  while (end.tv_nsec < 0) end.tv_nsec += 1000000000, end.tv_sec -= 1;
  while (end.tv_nsec >= 1000000000) end.tv_nsec -= 1000000000, end.tv_sec += 1;
  return pthread_cond_timedwait(condition, mutex, &end);
}

// libudev, of which hwloc asks the names of disks: there are none.
HIDDEN void* udev_new(void) { return NULL; }
HIDDEN void* udev_unref(void* udev) { return udev; }
HIDDEN void* udev_device_new_from_subsystem_sysname(void* udev, const char* kind, const char* name) {
  (void)udev, (void)kind, (void)name;
  return NULL;
}
HIDDEN const char* udev_device_get_property_value(void* device, const char* key) {
  (void)device, (void)key;
  return NULL;
}
HIDDEN void* udev_device_unref(void* device) { return device; }
