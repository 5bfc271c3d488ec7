# The image of a node, and of the command line: `docker build -t quorate .`
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/quorate \
    && /opt/quorate/bin/pip install --no-cache-dir --constraint constraints.txt .

FROM python:3.13-slim
RUN groupadd --gid 10001 quorate \
    && useradd --uid 10001 --gid quorate --no-create-home --shell /usr/sbin/nologin quorate \
    && install --directory --owner quorate --group quorate --mode 0700 /var/lib/quorate
COPY --from=build /opt/quorate /opt/quorate
COPY config/deployment/run-node.sh /usr/local/bin/run-node.sh
COPY config/deployment/controller.properties config/deployment/broker.properties \
     config/deployment/combined.properties /etc/quorate/
ENV PATH=/opt/quorate/bin:$PATH
USER 10001:10001
VOLUME /var/lib/quorate
# clients, controllers, brokers
EXPOSE 9092 9093 9094
# The port for nodes answers HTTP: 9093 on a controller, 9094 on a broker.
ENV HEALTH_PORT=9094
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"HEALTH_PORT\"]}/readyz')"]
ENTRYPOINT ["quorate"]
CMD ["--help"]
