# The extender's image. Where it is built, replace the tag by its digest (python:3.13.16-slim-trixie@sha256:...): the
# project's own machines reach no image registry, so that this file is linted and its steps are tried there one by one,
# but it is never built, and no digest could be looked up.

FROM python:3.13.16-slim-trixie AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.txt requirements-dev.txt ./
# The environment of the image, without pip. Wheels only: nothing is compiled, and nobody's setup.py is run.
RUN python -m venv --without-pip /opt/gang-extender \
    && pip --python /opt/gang-extender/bin/python install --require-hashes --only-binary=:all: -r requirements.txt
# The development lock is the one that pins the build backend.
RUN pip install --require-hashes --only-binary=:all: -r requirements-dev.txt
COPY pyproject.toml README.md ./
COPY extender ./extender
RUN python -m hatchling build --target wheel --directory /dist \
    && pip --python /opt/gang-extender/bin/python install --no-deps --no-index /dist/*.whl

FROM python:3.13.16-slim-trixie
LABEL org.opencontainers.image.title="gang-extender" \
      org.opencontainers.image.description="A kube-scheduler extender for distributed training: gangs are placed whole or not at all" \
      org.opencontainers.image.version="0.1.0"
# The base image's own installer: not needed any more, and the handiest tool for an intruder.
RUN python -m pip uninstall --yes --root-user-action=ignore pip \
    && rm -r /usr/local/lib/python3.13/ensurepip
COPY --from=build /opt/gang-extender /opt/gang-extender
# The log line by line, the stack of a crash, and no attempt to write below a read-only root.
ENV PYTHONUNBUFFERED=1 \
    PYTHONFAULTHANDLER=1 \
    PYTHONDONTWRITEBYTECODE=1
# A number, since the kubelet cannot check runAsNonRoot against a name.
USER 65532:65532
# The verbs; the probes and metrics.
EXPOSE 8888 8889
ENTRYPOINT ["/opt/gang-extender/bin/gang-extender"]
CMD ["serve", "--config", "/etc/gang-extender/config.yaml"]
