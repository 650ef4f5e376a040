# Two images of one source: `app` for the web process and the worker, `runner` for a GPU machine.
#
#   docker build --target app -t graft .             docker build --target runner -t graft-runner .
#   docker run graft serve                           docker run --gpus all graft-runner --labels gpu,h100
#   docker run graft worker
#
# Secrets come at run time, by variables or mounted files (GRAFT_PRIVATE_KEY_FILE …), never into a layer.
# `.ci/image` builds both without an engine and starts what is in them.
ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS base
# tini: as process 1 it hands signals on and reaps what a suite leaves behind.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 graft \
    && useradd --uid 10001 --gid graft --create-home --shell /usr/sbin/nologin graft \
    && install -d -o graft -g graft /var/lib/graft
ENV PATH=/opt/graft/bin:$PATH PYTHONUNBUFFERED=1 GRAFT_DATA=/var/lib/graft

FROM base AS build
WORKDIR /src
RUN python3 -m venv /opt/graft
# The dependencies change seldom and the sources often: a layer of their own.
COPY pyproject.toml constraints.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
print(*p["dependencies"], *p["optional-dependencies"]["postgres"], sep="\n")' > requirements.txt \
    && pip install --disable-pip-version-check -c constraints.txt -r requirements.txt

FROM build AS build-runner
# What the harnesses call: pytest, lit, and Triton to compile kernels. A fork's own build and torch go on top of this.
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --disable-pip-version-check -c constraints.txt triton pytest lit obstore

FROM build AS wheel
COPY . .
RUN pip wheel --disable-pip-version-check --no-deps --wheel-dir /wheels .

FROM base AS app
COPY --from=build /opt/graft /opt/graft
COPY --from=wheel /wheels /opt/wheels
RUN pip install --disable-pip-version-check --no-deps /opt/wheels/*.whl
ENV GRAFT_HOST=0.0.0.0 GRAFT_PORT=8000
USER 10001:10001
WORKDIR /var/lib/graft
VOLUME /var/lib/graft
EXPOSE 8000
ENTRYPOINT ["tini", "--", "graft"]
CMD ["serve"]

FROM base AS runner
# Triton builds its launcher with a C compiler when a kernel first runs on a GPU.
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build-runner /opt/graft /opt/graft
COPY --from=wheel /wheels /opt/wheels
RUN pip install --disable-pip-version-check --no-deps /opt/wheels/*.whl
USER 10001:10001
WORKDIR /var/lib/graft
VOLUME /var/lib/graft
ENTRYPOINT ["tini", "--", "graft", "runner"]
