"""Model calls: the view that the next one gets, what each past one saw and cost, how two differ, and what a provider refused of one."""
