"""The former name of `palaver.tools.workers.run_in_worker`, until its callers use the new one."""

from palaver.tools.workers import run_in_worker as aside

__all__ = ["aside"]
