from standin_environments import ObservationWrapper, Wrapper

__all__ = ["Monitor", "ObservationWrapper", "RecordVideo", "TimeLimit", "Wrapper"]


class Monitor(Wrapper):
    def __init__(self, env, *arguments, **others):
        super().__init__(env)


RecordVideo = TimeLimit = Monitor
