#!/bin/sh
# Installs the wheel into a fresh virtual environment without network (numpy and the rest come from the system), then
# runs the examples and the docstrings with it.
# usage: wheel.sh PYTHON LIBRARY WORK
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$1 library=$2 work=$3
rm -rf "$work"; mkdir -p "$work"
strip -o "$work/liblacuna.so" "$library"
"$python" "$here/../../tools/make_wheel.py" "$work/liblacuna.so" "$work/dist"
"$python" "$here/../../tools/make_wheel.py" "$work/liblacuna.so" "$work/again"
cmp "$work"/dist/*.whl "$work"/again/*.whl
"$python" -m zipfile -l "$work"/dist/*.whl | grep -q licences/libfmt-dev
"$python" -m venv --system-site-packages "$work/venv"
"$work/venv/bin/pip" install --quiet --no-index "$work"/dist/lacuna-*.whl
unset LACUNA_LIBRARY PYTHONPATH
cd "$work"
./venv/bin/python -c "import lacuna, sys; assert lacuna.__file__.startswith(sys.prefix), lacuna.__file__; print(lacuna.__version__)"
for example in "$here"/../../examples/python/*.py; do
  MPLBACKEND=Agg ./venv/bin/python "$example" > /dev/null
done
./venv/bin/python -c "import doctest, lacuna.classifier as m; assert doctest.testmod(m).failed == 0"
./venv/bin/pip uninstall --quiet --yes lacuna
