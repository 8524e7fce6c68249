"""Files for test_h5ad.cc, as anndata and h5py write them, and a look through anndata at what lacuna wrote.

    anndata_files.py write FOLDER      good files
    anndata_files.py hostile FOLDER    files that must be refused
    anndata_files.py show FILE         what anndata reads, as JSON

Value (i, j) of every X is 10 i + j, but 0 where i + j is a multiple of 3.
"""
import json
import sys
import warnings

import h5py
import numpy as np
import pandas as pd
from anndata import AnnData
from anndata.experimental import read_elem, write_elem
from scipy import sparse

warnings.filterwarnings("ignore")
ROWS, COLUMNS = 6, 4


def values(rows=range(ROWS), columns=COLUMNS, dtype=np.float32):
    return np.array([[0 if (i + j) % 3 == 0 else 10 * i + j for j in range(columns)] for i in rows], dtype=dtype)


def observations():
    obs = pd.DataFrame(index=[f"c{i}" for i in range(ROWS)])
    obs["celltype"] = pd.Categorical(["B", "T", None, "B", "NK", "T"], categories=["T", "B", "NK"])
    obs["treated"] = [True, False, True, False, True, False]
    obs["maybe"] = pd.array([True, None, False, True, None, False], dtype="boolean")
    obs["cluster"] = pd.array([3, 1, None, 3, 2, 1], dtype="Int64")
    obs["binary"] = [1.0, 0.0, np.nan, 1.0, 0.0, 1.0]
    obs["answer"] = ["yes", "no", "", "yes", "nan", "no"]
    obs["score"] = np.linspace(0, 1, ROWS)
    return obs


def variables(columns=COLUMNS, stem="g"):
    return pd.DataFrame(index=[f"{stem}{j}" for j in range(columns)])


def adata(X):
    return AnnData(X, obs=observations(), var=variables(), dtype=X.dtype)


def unsorted():
    """Columns in falling order, and each value in two parts, as SciPy allows it."""
    data, indices, indptr = [], [], [0]
    for row in values():
        for j in reversed(np.flatnonzero(row)):
            data += [row[j] - 1, 1]
            indices += [j, j]
        indptr.append(len(data))
    X = sparse.csr_matrix((ROWS, COLUMNS), dtype=np.float32)
    X.data, X.indices, X.indptr = np.array(data, np.float32), np.array(indices, np.int32), np.array(indptr, np.int32)
    return X


def write_old(path):
    """anndata 0.6: records, and categories in uns."""
    obs = np.array([(f"c{i}".encode(), code, i % 2 == 0) for i, code in enumerate([1, 0, -1, 1, 2, 0])],
                   dtype=[("index", "S2"), ("celltype", "i1"), ("treated", "?")])
    with h5py.File(path, "w") as f:
        group = f.create_group("X")
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", (ROWS, COLUMNS)
        X = sparse.csr_matrix(values())
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(X, name)
        f["obs"] = obs
        f["var"] = np.array([(f"g{j}".encode(),) for j in range(COLUMNS)], dtype=[("index", "S2")])
        f["uns/celltype_categories"] = np.array([b"T", b"B", b"NK"])


def write_0_7(path):
    """anndata 0.7: a data frame of datasets, and categories beside them."""
    with h5py.File(path, "w") as f:
        f["X"] = values()
        for name, index in (("obs", [f"c{i}" for i in range(ROWS)]), ("var", [f"g{j}" for j in range(COLUMNS)])):
            group = f.create_group(name)
            group.attrs.update({"_index": "_index", "encoding-type": "dataframe", "encoding-version": "0.1.0"})
            group.attrs["column-order"] = ["celltype"] if name == "obs" else np.zeros(0)
            group["_index"] = np.array(index, dtype=object)
        f["obs/celltype"] = np.array([1, 0, -1, 1, 2, 0], dtype=np.int8)
        f["obs/__categories/celltype"] = np.array(["T", "B", "NK"], dtype=object)
        f["obs/celltype"].attrs["categories"] = f["obs/__categories/celltype"].ref


def write_mudata(path):
    """As mudata writes it: rna of c0..c4, protein of c5, c3, c1; a mask and a map for each."""
    obs = observations()
    with h5py.File(path, "w", userblock_size=512) as f:
        f.attrs.update({"encoding-type": "MuData", "encoding-version": "0.1.0", "encoder": "mudata", "axis": 0})
        rna = AnnData(sparse.csr_matrix(values(range(5))), obs=obs[["celltype"]].iloc[:5], var=variables(), dtype="f4")
        rna.obsm["X_pca"] = np.arange(10, dtype=np.float32).reshape(5, 2)
        rna.layers["counts"] = rna.X.copy()
        prot = AnnData(values([5, 3, 1], 3), obs=obs[["treated"]].iloc[[5, 3, 1]], var=variables(3, "p"), dtype="f4")
        mod = f.create_group("mod")
        mod.attrs["mod-order"] = ["rna", "prot"]
        write_elem(mod, "rna", rna)
        write_elem(mod, "prot", prot)
        write_elem(f, "obs", obs[["answer"]].rename(columns={"answer": "all:answer"}))
        write_elem(f, "var", pd.concat([rna.var, prot.var]))
        masks = {"rna": obs.index.isin(rna.obs_names), "prot": obs.index.isin(prot.obs_names)}
        write_elem(f, "obsm", masks)
        for key in ("varm", "obsp", "varp", "uns"):
            write_elem(f, key, {})
    with open(path, "br+") as f:
        f.write(b"MuData (format-version=0.1.0;creator=mudata;creator-version=0.2.1)")


def write(folder):
    a = adata(values(dtype=np.float64))
    a.obsm["X_pca"] = np.arange(2 * ROWS, dtype=np.float64).reshape(ROWS, 2)
    a.obsm["tags"] = np.array([[i % 2, 1, 0] for i in range(ROWS)], dtype=np.int64)
    a.obsm["frame"] = pd.DataFrame({"p": a.obs["treated"], "q": a.obs["maybe"]})
    a.layers["counts"] = a.X + 1
    a.raw = a
    a.write_h5ad(folder + "/dense.h5ad")
    adata(sparse.csr_matrix(values())).write_h5ad(folder + "/csr.h5ad")
    adata(sparse.csc_matrix(values())).write_h5ad(folder + "/csc.h5ad")
    adata(sparse.csr_matrix(values())).write_h5ad(folder + "/gzip.h5ad", compression="gzip")
    adata(values()).write_h5ad(folder + "/lzf.h5ad", compression="lzf")
    adata(values(dtype=np.float16)).write_h5ad(folder + "/half.h5ad")
    adata(values(dtype=np.uint8)).write_h5ad(folder + "/uint8.h5ad")
    adata(values(dtype=">i4")).write_h5ad(folder + "/big_endian.h5ad")
    b = adata(values())
    with h5py.File(folder + "/chunked.h5ad", "w") as f:
        write_elem(f, "/", b)
        del f["X"]
        f.create_dataset("X", data=b.X, chunks=(4, 3), compression="gzip", shuffle=True, fletcher32=True)
    adata(sparse.csr_matrix(values())).write_h5ad(folder + "/unsorted.h5ad")
    with h5py.File(folder + "/unsorted.h5ad", "a") as f:
        X = unsorted()
        for name in ("data", "indices", "indptr"):
            del f["X"][name]
            f["X"][name] = getattr(X, name)
    c = adata(values())
    c.var_names = ["A", "A", "A-1", "A"]
    c.write_h5ad(folder + "/twins.h5ad")
    d = AnnData(values(), dtype="f4")
    d.write_h5ad(folder + "/plain.h5ad")
    write_old(folder + "/old.h5ad")
    write_0_7(folder + "/v0_7.h5ad")
    write_mudata(folder + "/multi.h5mu")


def hostile(folder):
    good = folder + "/good.h5ad"
    adata(sparse.csr_matrix(values())).write_h5ad(good)

    def broken(name, change):
        with open(good, "rb") as source, open(f"{folder}/{name}.h5ad", "wb") as target:
            target.write(source.read())
        with h5py.File(f"{folder}/{name}.h5ad", "a") as f:
            change(f)

    def replace(key, value, **more):
        def change(f):
            if key in f:
                del f[key]
            if isinstance(value, (h5py.ExternalLink, h5py.SoftLink)):
                f[key] = value
            else:
                f.create_dataset(key, data=value, **more)
        return change

    broken("external_link", replace("X", h5py.ExternalLink("/etc/passwd", "/")))
    broken("soft_link", replace("X", h5py.SoftLink("/raw")))
    broken("soft_link_inside", replace("X/data", h5py.SoftLink("/X/indptr")))

    def itself(f):
        del f["X"]
        f["X"] = f["/"]
        f["mod"] = f["/"]
    broken("itself", itself)

    def many_links(f):
        f.create_dataset("mod/m/X", data=np.ones((512, 512), np.float32))
        for name, count in (("obs", 512), ("var", 512)):
            write_elem(f, f"mod/m/{name}", pd.DataFrame(index=[f"{name}{i}" for i in range(count)]))
        for k in range(320):  # read one by one they would be 320 MB; a file may be read over 16 times
            f[f"mod/m{k}"] = f["mod/m"]
    broken("many_links", many_links)

    def external_storage(f):
        del f["X"]
        f.create_dataset("X", (ROWS, COLUMNS), "f4", external=[("/etc/passwd", 0, 96)])
    broken("external_storage", external_storage)

    def virtual(f):
        del f["X"]
        layout = h5py.VirtualLayout((ROWS, COLUMNS), "f4")
        layout[:] = h5py.VirtualSource("/etc/passwd", "X", (ROWS, COLUMNS))
        f.create_virtual_dataset("X", layout)
    broken("virtual", virtual)

    def huge(f):
        del f["X"]
        f.create_dataset("X", (1 << 40, 1 << 20), "f4", chunks=(64, 64))
    broken("huge", huge)

    def huge_names(f):
        del f["obs/_index"]
        f.create_dataset("obs/_index", (1 << 40,), h5py.string_dtype(), chunks=(64,))
    broken("huge_names", huge_names)

    def pipeline(*filters):
        def change(f):
            del f["X"]
            plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plan.set_chunk((ROWS, COLUMNS))
            for code in filters:
                plan.set_filter(code, h5py.h5z.FLAG_OPTIONAL, (4,))
            space = h5py.h5s.create_simple((ROWS, COLUMNS))
            data = h5py.h5d.create(f.id, b"X", h5py.h5t.IEEE_F32LE, space, plan)
            data.write(h5py.h5s.ALL, h5py.h5s.ALL, values())
        return change
    broken("filter", pipeline(32015))
    broken("filter_twice", pipeline(1, 1))
    broken("text_matrix", replace("X", np.array([["a"] * COLUMNS] * ROWS, dtype=object), dtype=h5py.string_dtype()))
    broken("cube", replace("X", np.zeros((ROWS, COLUMNS, 2))))
    broken("complex", replace("X", np.zeros((ROWS, COLUMNS), dtype=np.complex64)))
    broken("few_rows", replace("X", values()[:5]))
    broken("few_columns", replace("X", values()[:, :3]))
    broken("far_column", replace("X/indices", np.full(16, COLUMNS, np.int32)))
    broken("negative_column", replace("X/indices", np.full(16, -1, np.int32)))
    broken("falling_starts", replace("X/indptr", np.array([0, 9, 3, 9, 12, 14, 16], np.int32)))
    broken("short_starts", replace("X/indptr", np.array([0, 16], np.int32)))
    broken("no_data", lambda f: f.__delitem__("X/data"))
    broken("no_obs", lambda f: f.__delitem__("obs"))
    broken("no_index", lambda f: f["obs"].attrs.__delitem__("_index"))
    broken("odd_index", lambda f: f["obs"].attrs.__setitem__("_index", 7))
    broken("odd_encoding", lambda f: f["X"].attrs.__setitem__("encoding-type", "awkward-array"))
    broken("huge_shape", lambda f: f["X"].attrs.__setitem__("shape", np.array([ROWS, 1 << 40])))
    broken("twins", replace("obs/_index", np.array(["a", "b", "c", "b", "d", "e"], dtype=object)))
    broken("far_code", replace("obs/celltype/codes", np.array([9] * ROWS, np.int8)))
    broken("short_mask", replace("obs/maybe/mask", np.zeros(2, bool)))
    AnnData(None, obs=observations(), obsm={"X_pca": values()}).write_h5ad(folder + "/no_x.h5ad")
    broken("no_rows", lambda f: [replace("obs/_index", np.zeros(0, "S1"))(f), replace("X", values()[:0])(f)])
    with open(folder + "/no_hdf5.h5ad", "wb") as f:
        f.write(b"PK\x03\x04 no HDF5 at all")
    with open(good, "rb") as source, open(folder + "/cut.h5ad", "wb") as target:
        target.write(source.read()[:2000])


def plain(column):
    return [None if pd.isna(x) else x.item() if hasattr(x, "item") else x for x in column]


def shown(a):
    X = None if a.X is None else np.asarray(a.X.todense() if sparse.issparse(a.X) else a.X).tolist()
    return {"X": X, "sparse": bool(sparse.issparse(a.X)), "obs_names": list(a.obs_names),
            "var_names": list(a.var_names), "obs": {name: plain(a.obs[name]) for name in a.obs.columns}}


def show(path):
    with h5py.File(path, "r") as f:
        if "mod" in f:
            out = {"magic": open(path, "rb").read(6).decode(), "order": list(f["mod"].attrs["mod-order"]),
                   "mod": {name: shown(read_elem(f["mod"][name])) for name in f["mod"]},
                   "obs_names": list(read_elem(f["obs"]).index),
                   "obs": {name: plain(column) for name, column in read_elem(f["obs"]).items()},
                   "obsm": {name: read_elem(f["obsm"][name]).tolist() for name in f["obsm"]},
                   "obsmap": {name: read_elem(f["obsmap"][name]).tolist() for name in f["obsmap"]}}
        else:
            from anndata import read_h5ad
            out = shown(read_h5ad(path))
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    {"write": write, "hostile": hostile, "show": show}[sys.argv[1]](sys.argv[2])
