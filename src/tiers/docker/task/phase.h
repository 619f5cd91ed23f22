// The phases of a task: what an unattended launch is for, and so what it may.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace belljar::tiers::docker::task {

enum class Phase : uint8_t { kPlan, kQuestions, kReview, kExecute, kFix };

inline constexpr std::array kPhases = {Phase::kPlan, Phase::kQuestions, Phase::kReview, Phase::kExecute, Phase::kFix};

// "plan", "questions", "review", "execute", "fix"
[[nodiscard]] const char* to_text(Phase phase);
[[nodiscard]] std::optional<Phase> phase_of(std::string_view text);

// The work folder is the agent's to write in execute and fix alone; its metadata never is.
[[nodiscard]] bool may_write(Phase phase);

}  // namespace belljar::tiers::docker::task
