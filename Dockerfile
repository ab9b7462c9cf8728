# The page in a container, as a plain user. docs/deployment.md says how to build and run it.
FROM python:3.12-slim

RUN useradd --create-home --uid 1000 user
USER user
ENV HOME=/home/user \
    PATH=/home/user/.local/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    XDG_CACHE_HOME=/home/user/cache \
    HF_HOME=/home/user/cache/hub \
    LOOKAHEAD_CACHE_DIR=/home/user/cache/lookahead \
    GRADIO_TEMP_DIR=/tmp/gradio \
    GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860
RUN mkdir /home/user/cache
WORKDIR /home/user/app

# PyTorch's CPU builds are preferred where this index has them. For CUDA: --build-arg TORCH_INDEX=https://pypi.org/simple
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY requirements.txt ./
RUN pip install --user --no-cache-dir --extra-index-url "$TORCH_INDEX" -r requirements.txt

# The code belongs to root: the app cannot change it.
COPY app.py ./
COPY interface ./interface
COPY lookahead_core ./lookahead_core
COPY docs/calls.md ./docs/calls.md

VOLUME /home/user/cache
EXPOSE 7860
# The first start downloads the model; a success within the start period ends that period.
HEALTHCHECK --start-period=15m CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:7860/health')"]
CMD ["python", "app.py"]
