"""Planning a service: how many GPUs run prompts, how many make tokens, and what its users see."""

from rooflang.service.demand import Demand
from rooflang.service.offer import Offer, Pool
from rooflang.service.planner import ServicePlan, plan_service

__all__ = ["Demand", "Offer", "Pool", "ServicePlan", "plan_service"]
