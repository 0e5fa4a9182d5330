"""Gemini's Interactions API: what it accepts, how its requests are written and checked, its answers, its lists of steps, its client."""
