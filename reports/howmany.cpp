#include "reports/record.h"

int main() { return 2; }
