from __future__ import annotations

import textwrap

from flatout.source.analysis.training_sites import unseen

AGENT = textwrap.dedent(
    """\
    class Agent:
        def act(self, state):
            if random() < self.epsilon:
                return 0
            return self.model.predict(state)

        def learn(self, batch):
            targets = self.model.predict(batch)
            self.model.fit(batch, targets)


    agent = Agent()
    for state in states:
        agent.act(state)
        agent.learn(states)
    print(agent.model.predict(states))
    """
)
PHASES = textwrap.dedent(
    """\
    model.fit(x, y)

    for batch in batches:
        with tf.GradientTape() as tape:
            loss = model(batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))


    def unused():
        model.fit(x, y)
    """
)


def sites(text: str, *lines: int) -> list[tuple[int, bool]]:
    return [(site.first, site.trains) for site in unseen({"a.py": text}, {"a.py": set(lines)})]


def test_a_prediction_of_an_agent_that_explores() -> None:
    assert sites(AGENT, 8, 9) == [(5, False)]
    assert sites(AGENT, 5, 8, 9) == []


def test_a_prediction_made_once_at_the_end_is_not_waited_for() -> None:
    assert 15 not in [line for line, _ in sites(AGENT)]


def test_the_loop_behind_fit() -> None:
    assert sites(PHASES, 1) == [(3, True)]
    assert sites(PHASES, 1, 6) == []


def test_text_that_cannot_be_read() -> None:
    assert sites("for") == []
