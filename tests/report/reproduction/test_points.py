"""Published points: read, named, grouped into jobs, and compared."""

from __future__ import annotations

from rooflang.report.reproduction.points import (
    ComparedPoint,
    compared_points,
    point_jobs,
    published_points,
)
from rooflang.report.reproduction.setting import HARDWARE, MODELS, Scope


def test_all_points_for_the_platforms_of_the_paper_are_read_once() -> None:
    points = published_points()
    assert len(points) == len({point.name for point in points}) == 174
    assert {point.setting.model for point in points} == set(MODELS)
    assert {point.setting.hardware for point in points} == set(HARDWARE)
    assert sum(point.setting.hardware == "gh200" for point in points) == 2


def test_each_point_is_in_one_job() -> None:
    jobs = list(point_jobs(Scope()))
    assert len({job.name for job in jobs}) == len(jobs)
    assert sum(len(job.asked["layouts"]) for job in jobs) == len(published_points())
    few = list(point_jobs(Scope(models=("kimi-k3",), gpus=(8,))))
    assert {job.asked["model"] for job in few} == {"kimi-k3"}
    assert {job.asked["gpus"] for job in few} == {8}


def test_the_larger_error_counts_and_what_is_not_published_does_not() -> None:
    point = next(each for each in published_points() if each.tok_s_user is not None)
    assert point.tok_s_user is not None
    near = ComparedPoint(published=point, tok_s_user=point.tok_s_user * 1.002, tok_s_gpu=point.tok_s_gpu * 0.995)
    assert round(near.error, 6) == -0.005
    assert near.agrees
    far = ComparedPoint(published=point, tok_s_user=point.tok_s_user * 1.02, tok_s_gpu=point.tok_s_gpu)
    assert not far.agrees
    quoted = next(each for each in published_points() if each.tok_s_user is None)
    assert ComparedPoint(published=quoted, tok_s_user=1.0, tok_s_gpu=quoted.tok_s_gpu).error == 0.0


def test_results_come_back_to_their_points() -> None:
    job = next(iter(point_jobs(Scope(models=("glm-5.3",)))))
    ours = [{"tok_s_user": 1.0 + n, "tok_s_gpu": 2.0 + n} for n in range(len(job.asked["layouts"]))]
    compared = compared_points({job.name: {"points": ours}})
    assert [point.tok_s_user for point in compared] == [one["tok_s_user"] for one in ours]
    assert [point.published.batch for point in compared] == [layout["batch"] for layout in job.asked["layouts"]]
