#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/corpus that hold arrays: good files, and files that readers must refuse.

usage: tests/fuzz/make_seeds.py      (needs NumPy, SciPy and h5py)

A good file is called seed-..., what must be refused hostile-...; make test replays both.
"""
import ctypes
import io
import json
import struct
from pathlib import Path

import h5py
import numpy as np

CORPUS = Path(__file__).resolve().parent / "corpus"


def put(form, name, content):
    folder = CORPUS / form
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(packed=True, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **arrays)
    return out.getvalue()


def files(form, options, **sections):
    """Several files: names hold a dot for every '__', and a slash for every '___'."""
    out = options.encode()
    for name, content in sections.items():
        name = name.replace("___", "/").replace("__", ".")
        out += b"\n=== " + name.encode() + b"\n" + (content if isinstance(content, bytes) else content.encode())
    put("files", form, out)


# ---- NumPy

X = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
SPARSE = {"s.data": np.array([1, 2], np.float32), "s.indices": np.array([0, 2]), "s.indptr": np.array([0, 1, 1, 2]),
          "s.shape": np.array([3, 4])}


def numpy_files():
    put("npz", "seed-sparse", npz(**SPARSE, label=Y, G=np.array([[1, 0], [1, 1], [0, 1]], np.uint8)))
    put("npz", "seed-names", npz(a=X, b=X[:, :1], view_names=np.array(["one", "two"]), label=Y, difficult=X,
                                 cube=np.zeros((2, 2, 2)), ids=np.array([7, 8, 9]), **{"a.columns": np.array(["p", "q"])},
                                 label_names=np.array(["sun", "sea"]), W=np.ones((3, 2), np.uint8), name=np.array("n"),
                                 source=np.array("s"), licence=np.array("l")))
    put("npz", "hostile-view-names", npz(a=X, view_names=np.array(["one", "two"])))
    put("npz", "hostile-text-label", npz(a=X, label=np.array([["u"], ["v"], ["w"]])))
    put("npz", "hostile-flat-label", npz(a=X, label=np.arange(3)))
    put("npz", "hostile-cube-mask", npz(a=X, W=np.ones((3, 1, 1), np.uint8)))
    for name, change in {"shape": np.array([3]), "columns": np.array([3, 2**40]), "rows": np.array([9, 4])}.items():
        put("npz", f"hostile-sparse-{name}", npz(**{**SPARSE, "s.shape": change}))
    put("npz", "hostile-sparse-parts", npz(**{k: v for k, v in SPARSE.items() if k != "s.indices"}))
    put("npy", "hostile-empty-texts", npy(np.zeros(2, "U1")).replace(b"<U1", b"<U0"))


# ---- folds

def fold_files():
    one = {"W0": np.ones((3, 2), np.uint8), "G0": np.ones((3, 2), np.uint8), "order0": np.arange(3, dtype=np.uint32),
           "shares": np.array([.7, .1])}
    put("folds-npz", "seed-ids", npz(**one, ids=np.array(["p", "q", "r"])))
    for name, change in {"shares": {"shares": np.array([.9, .9])}, "few-ids": {"ids": np.array(["p"])},
                         "twice": {"ids": np.array(["p", "q", "p"])}, "number-ids": {"ids": np.arange(3)},
                         "mask": {"G0": np.full((3, 2), 2, np.uint8)}, "no-shares": {"shares": np.array([.7])}}.items():
        put("folds-npz", f"hostile-{name}", npz(**{**one, **change}))
    from scipy.io import savemat

    def cells(*values):
        out = np.empty((1, len(values)), object)
        out[0, :] = values
        return out

    masks = {"folds_data": cells(np.ones((3, 2))), "folds_label": cells(np.ones((3, 2))),
             "folds_sample_index": cells(np.array([[1.], [2.], [3.]]))}
    texts = np.empty((1, 3), object)
    texts[0, :] = ["p", "q", "r"]
    for name, more in {"seed-ids": {"folds_shares": np.array([[.7, .1]]), "folds_ids": texts},
                       "hostile-shares": {"folds_shares": np.array([[.7]])},
                       "hostile-order": {"folds_sample_index": cells(np.ones((3, 3)))},
                       "hostile-mask": {"folds_data": cells(np.full((3, 2), 2.))},
                       "hostile-ids": {"folds_ids": cells(np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2)))}}.items():
        out = io.BytesIO()
        savemat(out, {**masks, **more}, do_compression=True)
        put("folds-mat", name, out.getvalue())


# ---- safetensors

def tensor_files():
    def file(tensors, metadata=None):
        header, payload = {}, b""
        if metadata is not None:
            header["__metadata__"] = metadata
        for name, (kind, array) in tensors.items():
            data = array.tobytes()
            header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(payload), len(payload) + len(data)]}
            payload += data
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + payload

    every = {"m": ("F32", X), "v": ("F32", X[0]), "d": ("F64", X.astype(np.float64)), "b": ("U8", np.arange(3, dtype=np.uint8)),
             "w": ("U32", np.arange(3, dtype=np.uint32)), "l": ("U64", np.arange(3, dtype=np.uint64)),
             "h": ("F16", X.astype(np.float16)), "x.i": ("I64", np.arange(2)), "cube": ("F32", np.zeros((1, 2, 3), np.float32))}
    put("safetensors", "seed-every-type", file(every, {"lacuna": json.dumps({"a": [1, {"b": "c"}]})}))
    put("safetensors", "hostile-metadata", file({}, {"lacuna": "[1"}))


# ---- data sets of several files

def several_files():
    table = "id,x,y\np,1,2\nq,4,5\nr,7,8\n"
    starts = npy(np.array([0, 1, 1, 2], np.uint64))
    index, values = npy(np.array([0, 2], np.uint32)), npy(np.array([1, 2], np.float32))
    sparse = ('schema = "lacuna.dataset.1"\nname = "n"\nrows = 3\nrow_numbers = {rows}\nids = "ids.txt"\npresent = "w.npy"\n'
              '[[views]]\nname = "s"\nvalues = "v.npy"\nindex = "i.npy"\nstart = "{start}"\nwidth = {width}\n'
              'columns = "c.txt"\n[[views]]\nname = "d"\nfile = "d.npy"\ntype = "float32"\n'
              '[labels]\nfile = "l.csv"\nclass = "kind"\n')

    def native(name, toml, **more):
        inside = {"set___dataset__toml": toml, "set___v__npy": values, "set___i__npy": index, "set___s__npy": starts,
                  "set___d__npy": npy(X), "set___c__txt": "a\nb\nc\nd\n", "set___w__npy": npy(np.ones((3, 2), np.uint8)),
                  "set___l__csv": "id,kind\n0,a\n1,b\n2,a\n", **more}
        files(name, "", **inside)

    native("seed-native-sparse", sparse.format(rows=0, start="s.npy", width=4))
    native("hostile-native-width", sparse.format(rows=0, start="s.npy", width=0))
    native("hostile-native-starts", sparse.format(rows=0, start="v.npy", width=4))
    native("hostile-native-present", sparse.format(rows=0, start="s.npy", width=4), set___w__npy=npy(np.ones(3, np.uint8)))
    native("hostile-native-views", "views = 1\n")
    native("hostile-native-folder", 'folder = "${NOT_THERE}"\n')
    native("hostile-native-brace", 'folder = "${NOT"\n')
    native("seed-native-home", 'folder = "."\n[[views]]\nname = "d"\nfile = "d.npy"\n[labels]\nfile = "l.csv"\nclass = 1\n')
    # Arrays named in dataset.toml.
    def variable(name, file, content, variable):
        files(name, "", set___dataset__toml=f'[[views]]\nname = "d"\nfile = "{file}"\nvariable = "{variable}"\n',
              **{"set___" + file.replace(".", "__"): content})
    from scipy.io import savemat
    from scipy.sparse import csc_matrix
    out = io.BytesIO()
    savemat(out, {"x": X, "s": csc_matrix(X), "t": "text"}, do_compression=True)
    variable("seed-variable-npz", "d.npz", npz(x=X), "x")
    variable("seed-variable-mat", "d.mat", out.getvalue(), "x")
    variable("seed-variable-sparse", "d.mat", out.getvalue(), "s")
    variable("hostile-variable-npz", "d.npz", npz(x=X), "y")
    variable("hostile-variable-mat", "d.mat", out.getvalue(), "t")
    # Labels in a file of their own.
    ids = "id,sun,sea\n{}"
    for name, options, t, labels in [
            ("hostile-labels-have-ids", "label-file=l.csv header=no", "1,2\n4,5\n", "id,sun\np,1\nq,0\n"),
            ("hostile-table-has-ids", "label-file=l.csv", table, "sun,sea\n1,0\n0,1\n1,1\n"),
            ("hostile-numbered", "label-file=l.csv", ",x\n0,1\n1,2\n", "id,sun\np,1\nq,0\n"),
            ("hostile-numbered-labels", "label-file=l.csv", table, ",sun\n0,1\n1,0\n2,1\n3,1\n"),
            ("hostile-rows", "label-file=l.csv", "x,y\n1,2\n3,4\n", "sun,sea\n1,0\n0,1\n1,1\n"),
            ("hostile-other-ids", "label-file=l.csv", table, ids.format("u,1,0\nv,0,1\n")),
            ("hostile-few-ids", "label-file=l.csv", "id,x\n" + "".join(f"p{i},{i}\n" for i in range(24)),
             ids.format("p1,1,0\n" + "".join(f"q{i},0,1\n" for i in range(24)))),
            ("hostile-twice", "label-file=l.csv", table, ids.format("p,1,0\np,0,1\n")),
            ("seed-other-name", "label-file=l.csv", table, "Sample_ID,sun\np,1\nq,0\n"),
            ("seed-class-file", "label-file=l.csv class-column=kind", table, "id,kind\np,a\nq,b\nr,a\n"),
            ("seed-tag-file", "label-file=l.csv tags-column=tags blank-means=no", table, "id,tags\np,a;b\nq,b\nr,\n")]:
        files(name, options, t__csv=t, l__csv=labels)
    files("hostile-form", "format=npx", t__csv=table)
    files("hostile-idle", "columns=4", t__csv=table)
    files("seed-form", "format=csv", t__txt=table)
    files("hostile-ending", "", t__npx=table)
    # Folders of tables.
    folder = {"set___a__csv": "id,x,note\np,1,u\nq,2,v\n", "set___b__csv": "id,z\np,1\nq,2\n"}
    labels = {"set___labels__csv": "id,sun\np,1\nq,0\n"}
    for name, options, more in [("seed-ignore", "ignore-columns=a:note", labels), ("hostile-range", "views=a=0-1", labels),
                                ("seed-unread", "ignore-columns=note", {"set___read__me": "x", **labels}),
                                ("hostile-no-view", "views=c ignore-columns=note", labels),
                                ("hostile-two-labels", "ignore-columns=note", {**labels, "set___labels__tsv": "id\tsea\np\t1\n"}),
                                ("seed-label-aside", "label-file=l.csv ignore-columns=note", {**labels, "set___l__csv": "id,sea\np,1\n"}),
                                ("hostile-no-labels", "class-column=c ignore-columns=note", {}),
                                ("hostile-ignored", "ignore-columns=note,nothing", labels),
                                ("hostile-id-column", "id-column=who ignore-columns=note", labels)]:
        files("folder-" + name if not name.startswith("seed") else "seed-folder" + name[4:], options, **folder, **more)
    files("hostile-empty-folder", "", set___read__me="x")


# ---- lines of CSV

def item_files():
    put("csv-items", "seed-r", "g1,g2,g3\np,1,2,3\nq,4,5,6\n")
    put("csv-items", "seed-order", "header=no\n" + ",".join(["1"] * 45) + "\n" + ",".join(["2"] * 45) + "\n")
    put("csv-items", "seed-id-column", "id-column=who\nwho,g1,g2,g3\np,1,2,3\n")
    put("csv-items", "hostile-id-column", "id-column=whom\nwho,g1,g2,g3\np,1,2,3\n")
    put("csv-items", "hostile-two-views", "id,a,img:a,g1,g1\np,1,2,3,4\n")
    put("csv-items", "hostile-count", "header=no\n1,2,3\n")
    put("csv-items", "hostile-count-id", "id-column=0 header=no\np,1,2,3\n")


# ---- HDF5

def hdf5(form, name, build):
    out = io.BytesIO()
    with h5py.File(out, "w", libver="latest") as file:
        build(file)
    put(form, name, out.getvalue())


def frame(parent, name, index, **columns):
    group = parent.create_group(name)
    group.attrs["encoding-type"] = "dataframe"
    group.attrs["_index"] = "_index"
    group.attrs["column-order"] = np.array(list(columns), dtype=h5py.string_dtype()) if columns else np.zeros(0)
    group["_index"] = np.array(index, dtype=h5py.string_dtype()) if isinstance(index, list) else index
    for key, values in columns.items():
        if isinstance(values, dict):
            inside = group.create_group(key)
            for part, one in values.items():
                inside[part] = one
        else:
            group[key] = values
    return group


TEXT = h5py.string_dtype()
NAMES, GENES = ["p", "q", "r"], ["g", "h"]


def annotated(file, obs=None, var=GENES, X=X, **columns):
    if X is not None:
        file["X"] = X
    frame(file, "obs", NAMES if obs is None else obs, **columns)
    frame(file, "var", var)


def sparse_matrix(file, name="X", data=(1, 2), indices=(0, 1), indptr=(0, 1, 1, 2), shape=(3, 2), kind="csr_matrix"):
    group = file.create_group(name)
    group.attrs["encoding-type"] = kind
    if shape is not None:
        group.attrs["shape"] = np.array(shape)
    group["data"], group["indices"], group["indptr"] = np.array(data, np.float32), np.array(indices), np.array(indptr)


def h5ad_files():
    def good(file):
        annotated(file, n=np.array(["u", "", "v"], dtype=TEXT), b=np.array([True, False, True]),
                  c={"codes": np.array([0, -1, 1], np.int8), "categories": np.array(["s", "t"], dtype=TEXT)},
                  m={"values": np.array([1, 0, 1]), "mask": np.array([False, True, False])})
        obsm = file.create_group("obsm")
        frame(obsm, "o", NAMES, f=np.array([1., 0., 1.]), k=np.array([0., 1., 0.]))
        file.create_group("layers")["half"] = X.astype(np.float16)
    hdf5("h5ad", "seed-frame", good)
    hdf5("h5ad", "seed-repeated-names", lambda f: annotated(f, var=["g", "g"]))
    hdf5("h5ad", "seed-categorical-names", lambda f: (annotated(f, obs=NAMES), f["obs"].__delitem__("_index"),
                                                     f["obs"].create_group("_index"),
                                                     f["obs/_index"].create_dataset("codes", data=np.array([0, 1, 2])),
                                                     f["obs/_index"].create_dataset("categories", data=np.array(NAMES, dtype=TEXT))))
    for name, index in {"true": np.array([True, False]), "floats": np.array([.5, 1.5]), "integers": np.array([7, 9])}.items():
        hdf5("h5ad", f"seed-names-{name}", lambda f: annotated(f, obs=index, X=X[:2]))
    hdf5("h5ad", "seed-lzf", lambda f: (annotated(f, X=None), f.create_dataset("X", data=np.tile(X, (1, 1)), chunks=(3, 2), compression="lzf"),
                                        f.create_group("obsm").create_dataset("o", data=np.zeros((3, 400), np.float32), chunks=(3, 400), compression="lzf")))
    hdf5("h5ad", "seed-wide", lambda f: (annotated(f), f.create_group("obsm").create_dataset("o", data=np.zeros((3, 9000), np.float32), compression="gzip")))
    hdf5("h5ad", "seed-unsorted", lambda f: (annotated(f, X=None), sparse_matrix(f, data=(1, 2, 3), indices=(1, 0, 0), indptr=(0, 2, 3, 3))))
    for name, change in {"outside": {"indices": (0, 7)}, "ends": {"indptr": (0, 1, 1, 5)}, "falls": {"indptr": (0, 2, 1, 2)},
                         "shape": {"shape": (3,)}, "no-shape": {"shape": None}, "wide": {"shape": (3, 2**40)},
                         "starts": {"shape": (4, 2)}, "kind": {"kind": "dok"}}.items():
        hdf5("h5ad", f"hostile-sparse-{name}", lambda f: (annotated(f, X=None), sparse_matrix(f, **change)))
    hdf5("h5ad", "hostile-rows", lambda f: annotated(f, X=X[:2]))
    hdf5("h5ad", "hostile-columns", lambda f: annotated(f, var=["g"]))
    hdf5("h5ad", "hostile-text-matrix", lambda f: annotated(f, X=np.array([["a"]], dtype=TEXT)))
    hdf5("h5ad", "hostile-value", lambda f: annotated(f, X=np.float32(3)))
    hdf5("h5ad", "hostile-cube", lambda f: annotated(f, X=np.zeros((3, 2, 1))))
    hdf5("h5ad", "hostile-complex", lambda f: annotated(f, X=X.astype(np.complex64)))
    hdf5("h5ad", "hostile-long-double", lambda f: annotated(f, X=X.astype(np.longdouble)))
    hdf5("h5ad", "hostile-soft-link", lambda f: (annotated(f, X=None), f.__setitem__("X", h5py.SoftLink("/obs"))))
    hdf5("h5ad", "hostile-external-link", lambda f: (annotated(f, X=None), f.__setitem__("X", h5py.ExternalLink("/etc/passwd", "/"))))
    hdf5("h5ad", "hostile-external-values", lambda f: (annotated(f, X=None), f.create_dataset("X", (3, 2), "f4", external=[("/etc/passwd", 0, 24)])))
    hdf5("h5ad", "hostile-filter", lambda f: (annotated(f, X=None), f.create_dataset("X", data=X, chunks=(3, 2), scaleoffset=2)))
    hdf5("h5ad", "hostile-promise", lambda f: (annotated(f, X=None), f.create_dataset("X", (2**40, 2), "f4", chunks=(64, 2))))
    hdf5("h5ad", "hostile-index-code", lambda f: (annotated(f), f["obs"].__delitem__("_index"), f["obs"].create_group("_index"),
                                                  f["obs/_index"].create_dataset("codes", data=np.array([0, 9, 2])),
                                                  f["obs/_index"].create_dataset("categories", data=np.array(NAMES, dtype=TEXT))))
    hdf5("h5ad", "hostile-attribute", lambda f: (annotated(f), f["obs"].attrs.__setitem__("column-order", np.zeros((1, 1, 1)))))

    def with_options(name, options, build, ending="h5ad"):
        out = io.BytesIO()
        with h5py.File(out, "w", libver="latest") as file:
            build(file)
        files(name, options, **{f"t__{ending}": out.getvalue()})
    for name, options in {"seed-h5ad-labels": "labels=obs:b views=layers/half,p=obsm/o", "hostile-h5ad-view": "views=obsm/u",
                          "seed-h5ad-frame": "labels=obsm:o", "hostile-h5ad-labels": "labels=obsm:u", "hostile-h5ad-column": "labels=obs:u",
                          "seed-h5ad-text": "labels=obs:n,obs:m,c views=layers/half", "hostile-h5ad-any": "labels=u"}.items():
        with_options(name, options, good)
    with_options("hostile-h5ad-code", "labels=obs:c", lambda f: annotated(f, c={"codes": np.array([0, 5, 1]), "categories": np.array(["s"], dtype=TEXT)}))
    with_options("hostile-h5ad-column-shape", "labels=obs:c", lambda f: annotated(f, c=X))
    with_options("hostile-h5ad-mask", "labels=obs:c", lambda f: annotated(f, c={"values": np.arange(3), "mask": np.array([True])}))
    with_options("hostile-h5ad-encoding", "labels=obs:c", lambda f: annotated(f, c={"other": np.arange(3)}))
    with_options("hostile-h5ad-frame-text", "views=obsm/o", lambda f: (annotated(f), frame(f.create_group("obsm"), "o", NAMES, t=np.array(["u", "v", "w"], dtype=TEXT))))

    def several(file, axis=0, order=("b", "a")):
        file.attrs["axis"] = axis
        mod = file.create_group("mod")
        mod.attrs["mod-order"] = np.array(order, dtype=TEXT)
        for name, obs in {"a": NAMES, "b": ["q", "s"]}.items():
            one = mod.create_group(name)
            one["X"] = X[:len(obs)]
            frame(one, "obs", obs, t=np.arange(len(obs)) % 2)
            frame(one, "var", GENES)
        frame(file, "obs", NAMES + ["s"], c=np.array([1, 0, 1, 0]))
        frame(file, "var", [])
    hdf5("h5mu", "seed-order", several)
    hdf5("h5mu", "hostile-axis", lambda f: several(f, axis=1))
    for name, options in {"seed-h5mu-view": "views=a labels=c", "hostile-h5mu-column": "labels=t", "hostile-h5mu-none": "labels=u",
                          "seed-h5mu-prefix": "labels=a/obs:t", "hostile-h5mu-view": "views=u"}.items():
        with_options(name, options, several, "h5mu")


# ---- MATLAB 7.3, as libmatio writes it

class Sparse(ctypes.Structure):
    _fields_ = [("nzmax", ctypes.c_uint32), ("ir", ctypes.c_void_p), ("nir", ctypes.c_uint32), ("jc", ctypes.c_void_p),
                ("njc", ctypes.c_uint32), ("ndata", ctypes.c_uint32), ("data", ctypes.c_void_p)]


CLASSES = {"cell": 1, "struct": 2, "char": 4, "sparse": 5, "f8": 6, "f4": 7, "i1": 8, "u1": 9, "i2": 10, "u2": 11, "i4": 12, "u4": 13,
           "i8": 14, "u8": 15}
TYPES = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9, "i8": 12, "u8": 13, "cell": 21, "struct": 22}
LOGICAL, COMPLEX = 0x200, 0x800


def mat73_files():
    matio = ctypes.CDLL("libmatio.so.11")
    for name in ("Mat_CreateVer", "Mat_VarCreate"):
        getattr(matio, name).restype = ctypes.c_void_p
    kept = []

    def make(name, kind, values, flags=0):
        if kind == "cell":
            inside = (ctypes.c_void_p * len(values))(*[make(None, *value) for value in values])
            kept.append(inside)
            return create(name, kind, (1, len(values)), "cell", ctypes.cast(inside, ctypes.c_void_p))
        if kind == "sparse":
            jc, ir, data = (np.array(part, kind) for part, kind in zip(values, ("u4", "u4", "f8")))
            matrix = Sparse(len(data), ir.ctypes.data, len(ir), jc.ctypes.data, len(jc), len(data), data.ctypes.data)
            kept.extend([jc, ir, data, matrix])
            return create(name, kind, (3, len(jc) - 1), "f8", ctypes.cast(ctypes.byref(matrix), ctypes.c_void_p))
        array = np.asfortranarray(values, dtype="u2" if kind == "char" else kind)
        kept.append(array)
        return create(name, kind, array.shape, "u2" if kind == "char" else kind, ctypes.c_void_p(array.ctypes.data), flags)

    def create(name, kind, shape, stored, data, flags=0):
        return ctypes.c_void_p(matio.Mat_VarCreate(name.encode() if name else None, CLASSES[kind], TYPES[stored], len(shape),
                                                   (ctypes.c_size_t * len(shape))(*shape), data, flags))

    def mat73(name, /, **variables):
        path = str(CORPUS / "mat73" / name)
        mat = ctypes.c_void_p(matio.Mat_CreateVer(path.encode(), b"seed", 0x0200))
        for key, value in variables.items():
            if matio.Mat_VarWrite(mat, make(key, *value), 0) != 0:
                raise SystemExit(f"{name}: {key} is not written")
        matio.Mat_Close(mat)

    text = lambda letters: ("char", np.array([letters], np.uint16))
    mat73("seed-every-type", X=("cell", [(kind, X.astype(kind)) for kind in TYPES if len(kind) == 2]), label=("f8", Y),
          ids=("cell", [text([112]), text([113]), text([0xD83D, 0xDE00])]))
    mat73("seed-sparse", X=("cell", [("sparse", ((0, 1, 2), (0, 2), (1, 2))), ("f8", X)]), label=("u1", Y.astype(np.uint8), LOGICAL),
          name=text([0xD83D, 0xDE00]), G=("u1", Y.astype(np.uint8)), W=("u1", np.ones((3, 2), np.uint8)))
    mat73("seed-sparse-labels", X=("f4", X), label=("sparse", ((0, 1, 2), (0, 2), (1, 1))), ids=("f8", np.array([[1.], [2.], [3.]])))
    mat73("hostile-sparse-rows", X=("sparse", ((0, 1, 2), (0, 9), (1, 2))))
    mat73("hostile-sparse-ends", X=("sparse", ((0, 1, 9), (0, 2), (1, 2))))
    mat73("hostile-large", X=("f8", np.full((3, 2), 1e300)))


if __name__ == "__main__":
    np.seterr(all="ignore")
    numpy_files()
    fold_files()
    tensor_files()
    several_files()
    item_files()
    h5ad_files()
    mat73_files()
