"""The public names of jerp's equations and data types, as `jerp.<name>`.

Whatever is pure is here: data types, reductions, advantages, losses, estimators. What
reads files, runs models or draws figures is imported from its own module.
"""

from jerp.advantages.anchors import anchor_ids
from jerp.advantages.coverage import AnchorCoverage, anchor_coverage
from jerp.advantages.gigpo import GigpoAdvantages, gigpo_advantages
from jerp.advantages.group import GroupAdvantages, group_relative_advantages
from jerp.errors import (
    ConfigError,
    InputError,
    JerpError,
    ShapeError,
    SkillError,
    TrajectoryError,
    UnknownNameError,
)
from jerp.estimators.bands import simultaneous_band
from jerp.estimators.boundary import (
    BoundaryChange,
    CapabilitySet,
    boundary_change,
    capability_set,
    unsolved_upper_bound,
)
from jerp.estimators.break_even import (
    BreakEven,
    break_even,
    pass_between,
    samples_needed,
)
from jerp.estimators.changes import Changes, expected_changes
from jerp.estimators.contribution import Contributions, swap_contributions
from jerp.estimators.correlation import RankCorrelation, rank_correlation
from jerp.estimators.crossing import Crossing, crossing_k
from jerp.estimators.fitted_q import FittedQ, fitted_q_evaluation
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.estimators.lower_bound import bernstein_lower_bound
from jerp.estimators.marginal import marginal_horizon, marginal_k, saturation_horizon
from jerp.estimators.novelty import (
    SequenceOverlap,
    distinct_sequences,
    perplexity,
    sequence_overlap,
)
from jerp.estimators.ope import doubly_robust, importance_sampling
from jerp.estimators.ope_summary import OpeEstimate, PolicyEvaluation
from jerp.estimators.ope_terms import OpeTerms
from jerp.estimators.overlap import (
    Overlap,
    Refusal,
    explain_refusal,
    policy_overlap,
    refusal,
)
from jerp.estimators.passk import pass_at_k, pass_hat_k
from jerp.estimators.passk_float64 import pass_at_k_float64, pass_hat_k_float64
from jerp.estimators.policy_value import evaluate_policies
from jerp.estimators.power import (
    boundary_power,
    questions_for_power,
    samples_for_power,
)
from jerp.estimators.proportion import wilson_interval
from jerp.estimators.resampling import Statistic, weighted_mean
from jerp.estimators.sequential import (
    SequentialVerdict,
    paired_e_value,
    sequential_verdict,
    spent_alpha,
)
from jerp.estimators.sequential_power import PairsPlan, pairs_needed
from jerp.estimators.significance import (
    SignTest,
    holm,
    mcnemar_exact,
    mcnemar_one_sided,
    sign_test,
)
from jerp.estimators.standard_error import (
    clustered_standard_error,
    smallest_detectable_difference,
)
from jerp.estimators.student import student_interval, student_quantile
from jerp.estimators.summary import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from jerp.estimators.surface import PassSurface, SurfaceMean, pass_at_k_t
from jerp.estimators.verdict import (
    BoundaryTest,
    BoundaryVerdict,
    TaskChanges,
    boundary_test,
    boundary_verdict,
    task_changes,
)
from jerp.estimators.votes import first_discordant
from jerp.objectives.aggregate import aggregate_loss
from jerp.objectives.awr import (
    awr_policy_loss,
    awr_value_loss,
    awr_weights,
    effective_sample_size,
    task_mean_baseline,
    weighted_policy_loss,
)
from jerp.objectives.clipped import clipped_policy_loss
from jerp.objectives.entropy import policy_entropy
from jerp.objectives.kl import kl_estimate
from jerp.objectives.length import overlong_filter, overlong_penalty
from jerp.objectives.value import value_loss
from jerp.ops.compensated import compensated_returns
from jerp.ops.masked import (
    categorical_entropy,
    masked_log_softmax,
    masked_mean,
    masked_sum,
    masked_variance,
    safe_exp,
    safe_sqrt,
    standardize,
)
from jerp.ops.returns import discounted_returns, gae, lambda_returns
from jerp.ops.segments import (
    GroupIds,
    GroupStats,
    dense_group_ids,
    group_deviations,
    group_max,
    group_stats,
    group_sum,
    of_group,
)
from jerp.records import Interval, LossOutput, WeightedMean
from jerp.rules.absorption import (
    RuleLogProb,
    absorbed,
    absorption_gain,
    removal_loss,
    rule_log_prob,
)
from jerp.rules.edits import EditCounts, EditOp, RuleEdits, apply_edits
from jerp.rules.pool import RulePool, check_pool, init_pool, record_use
from jerp.rules.pruning import prune, retire
from jerp.rules.selection import leave_out, select_similar, select_top
from jerp.skills.difference import SkillChange, diff_skills
from jerp.skills.document import SKILL_LIMITS, Skill, parse_skill, render_skill
from jerp.skills.draft import ParsedDraft, parse_draft
from jerp.skills.faults import SkillFault, skill_faults
from jerp.skills.node import SkillNode
from jerp.skills.retention import EvidencePair, evidence_pair, retained
from jerp.skills.reward import SkillReward, format_schedule, skill_reward
from jerp.skills.tree import SkillTree, draw_tree
from jerp.trajectory import Trajectory, check_trajectory
from jerp.typing import Outcome

__all__ = [
    "SKILL_LIMITS",
    "AnchorCoverage",
    "BoundaryChange",
    "BoundaryTest",
    "BoundaryVerdict",
    "BreakEven",
    "CapabilitySet",
    "Changes",
    "ConfigError",
    "Contributions",
    "Crossing",
    "EditCounts",
    "EditOp",
    "EvidencePair",
    "FittedQ",
    "GigpoAdvantages",
    "GroupAdvantages",
    "GroupIds",
    "GroupStats",
    "InputError",
    "Interval",
    "JerpError",
    "LossOutput",
    "OpeEstimate",
    "OpeTerms",
    "Outcome",
    "Overlap",
    "PairsPlan",
    "ParsedDraft",
    "PassSurface",
    "PolicyEvaluation",
    "RankCorrelation",
    "Refusal",
    "RuleEdits",
    "RuleLogProb",
    "RulePool",
    "SequenceOverlap",
    "SequentialVerdict",
    "ShapeError",
    "SignTest",
    "Skill",
    "SkillChange",
    "SkillError",
    "SkillFault",
    "SkillNode",
    "SkillReward",
    "SkillTree",
    "Statistic",
    "SurfaceMean",
    "TaskChanges",
    "Trajectory",
    "TrajectoryError",
    "UnknownNameError",
    "WeightedMean",
    "absorbed",
    "absorption_gain",
    "aggregate_loss",
    "anchor_coverage",
    "anchor_ids",
    "apply_edits",
    "awr_policy_loss",
    "awr_value_loss",
    "awr_weights",
    "bernstein_lower_bound",
    "bootstrap_interval",
    "boundary_change",
    "boundary_power",
    "boundary_test",
    "boundary_verdict",
    "break_even",
    "capability_set",
    "categorical_entropy",
    "check_pool",
    "check_trajectory",
    "clipped_policy_loss",
    "clustered_standard_error",
    "compensated_returns",
    "crossing_k",
    "dense_group_ids",
    "diff_skills",
    "discounted_returns",
    "distinct_sequences",
    "doubly_robust",
    "draw_tree",
    "effective_sample_size",
    "evaluate_policies",
    "evidence_pair",
    "expected_changes",
    "explain_refusal",
    "first_discordant",
    "fitted_q_evaluation",
    "format_schedule",
    "gae",
    "gigpo_advantages",
    "group_deviations",
    "group_max",
    "group_relative_advantages",
    "group_stats",
    "group_sum",
    "holm",
    "importance_sampling",
    "init_pool",
    "interquartile_mean",
    "kl_estimate",
    "lambda_returns",
    "leave_out",
    "marginal_horizon",
    "marginal_k",
    "masked_log_softmax",
    "masked_mean",
    "masked_sum",
    "masked_variance",
    "mcnemar_exact",
    "mcnemar_one_sided",
    "of_group",
    "overlong_filter",
    "overlong_penalty",
    "paired_difference",
    "paired_e_value",
    "pairs_needed",
    "parse_draft",
    "parse_skill",
    "pass_at_k",
    "pass_at_k_float64",
    "pass_at_k_t",
    "pass_between",
    "pass_hat_k",
    "pass_hat_k_float64",
    "performance_profile",
    "perplexity",
    "policy_entropy",
    "policy_overlap",
    "probability_of_improvement",
    "prune",
    "questions_for_power",
    "rank_correlation",
    "record_use",
    "refusal",
    "removal_loss",
    "render_skill",
    "retained",
    "retire",
    "rule_log_prob",
    "safe_exp",
    "safe_sqrt",
    "samples_for_power",
    "samples_needed",
    "saturation_horizon",
    "select_similar",
    "select_top",
    "sequence_overlap",
    "sequential_verdict",
    "sign_test",
    "simultaneous_band",
    "skill_faults",
    "skill_reward",
    "smallest_detectable_difference",
    "spent_alpha",
    "standardize",
    "student_interval",
    "student_quantile",
    "swap_contributions",
    "task_changes",
    "task_mean_baseline",
    "unsolved_upper_bound",
    "value_loss",
    "weighted_mean",
    "weighted_policy_loss",
    "wilson_interval",
]
