"""Background checks: jobs for workers, with pauses so that other work goes on."""
