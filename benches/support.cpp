#include "benches/support.h"
