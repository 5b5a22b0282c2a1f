#!/usr/bin/env bash
# Sets up what run_autograder needs, as root, on Debian or Ubuntu: a Python with Kernelscope in an environment
# of its own beside this file, and bubblewrap.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1; }
apt-get update -qq
install bubblewrap || echo "bubblewrap cannot be installed here" >&2
works() { "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
python=
for name in python3 python3.14 python3.13 python3.12 python3.11; do
  if works "$name" || { install "$name" "$name-venv" && works "$name"; }; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "Kernelscope needs Python 3.11 or newer, and there is none to install here; choose a newer base image" >&2
  exit 1
fi
"$python" -m venv "$here/venv"
"$here/venv/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check -r "$here/requirements.txt"
echo "$here/lib" >"$("$here/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/kernelscope.pth"
"$here/venv/bin/python" -m compileall -q "$here/lib"
# Hidden shapes and answers are nobody's who runs a kernel.
chmod 600 "$here/assignment.toml"
"$here/venv/bin/python" -m kernelscope --version
