#include "reports/record.h"
