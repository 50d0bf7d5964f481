# Headlight as a container: `docker build -t headlight .`, then `docker run --rm -p 8501:8501 headlight`.
# The base image goes by its tag, which moves; who wants the same one again names its digest, as their registry says it:
# `docker build --build-arg BASE=python:3.11-slim@sha256:...`.
ARG BASE=python:3.11-slim

# The project is installed apart, so that its source and what building leaves behind stay out of the image.
FROM ${BASE} AS packed
WORKDIR /headlight
# The version of setuptools that builds it, and that earlier weights come along.
ENV PIP_CONSTRAINT=constraints.txt HEADLIGHT_EARLIER_WEIGHTS=1
COPY . .
RUN pip install --no-cache-dir --no-deps --prefix=/packed .

FROM ${BASE}
# Where to find PyTorch built for processors: for Linux the usual index has the one for graphics cards, 2.7 GB to load, of
# which the app uses nothing.
ARG PIP_EXTRA_INDEX_URL
WORKDIR /headlight
# What changes seldom first, so that a change of the code builds in seconds. Every package by its hash; what is left is
# PyTorch, by its version, since each index has a build of its own.
COPY requirements.txt requirements.lock constraints.txt ./
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements.lock \
 && pip install --no-cache-dir -c constraints.txt -r requirements.txt
COPY --from=packed /packed /usr/local
RUN useradd --create-home reader
USER reader
WORKDIR /home/reader
# Read once, so that smollm2 lies converted in the image: a container may have nowhere to write to.
RUN headlight record "Hello" --model smollm2 --output /dev/null
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
 CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"
ENTRYPOINT ["headlight"]
CMD ["app", "--address", "0.0.0.0"]
