// One engine for all cases of a program, which ends with them.
#include <gtest/gtest.h>

#include "docker/world.h"

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  const int result = RUN_ALL_TESTS();
  belljar::testing::DockerWorld::end();
  return result;
}
