// PID 1 of every guest.
#include "guest/init.h"

int main() { return belljar::guest::run_init(); }
