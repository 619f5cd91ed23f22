#include "tiers/docker/task/phase.h"

namespace belljar::tiers::docker::task {

const char* to_text(Phase phase) {
  switch (phase) {
    case Phase::kPlan:
      return "plan";
    case Phase::kQuestions:
      return "questions";
    case Phase::kReview:
      return "review";
    case Phase::kExecute:
      return "execute";
    case Phase::kFix:
      break;
  }
  return "fix";
}

std::optional<Phase> phase_of(std::string_view text) {
  for (const Phase phase : kPhases) {
    if (text == to_text(phase)) return phase;
  }
  return std::nullopt;
}

bool may_write(Phase phase) {
  return phase == Phase::kExecute || phase == Phase::kFix;
}

}  // namespace belljar::tiers::docker::task
