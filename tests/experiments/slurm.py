"""A stand-in for Slurm: a folder of programs that run jobs here, one process each.

It knows what a sweep uses: `sbatch` takes a file and answers with a number, the file
calls `srun`, and `sacct` tells states, which a job that was killed keeps as FAILED.
"""

import stat

SBATCH = """#!/bin/bash
number=$(({first} + $(ls {folder}/*.sh 2> /dev/null | wc -l)))
if grep -q -- --partition=refused "$1"; then
  echo "sbatch: error: Batch job submission failed" >&2
  echo "sbatch: error: invalid partition specified: refused" >&2
  exit 1
fi
cp "$1" {folder}/$number.sh
echo RUNNING > {folder}/$number.state
(
  if SLURM_JOB_ID=$number bash "$1"
  then echo COMPLETED > {folder}/$number.state
  else echo FAILED > {folder}/$number.state
  fi
) > /dev/null 2>&1 &
echo "Submitted batch job $number"
"""

SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do
  if [[ $1 == --output ]]; then shift; log=${1//%j/$SLURM_JOB_ID}; fi
  shift
done
export SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0
export SLURM_PROCID=0 SLURM_LOCALID=0
"$@" >> ${log//%t/0} 2>&1
"""

SACCT = """#!/bin/bash
echo "JobID|State|NodeList"
while [[ $# -gt 0 ]]; do
  if [[ $1 == -j ]]; then shift; echo "$1|$(cat {folder}/$1.state)|here"; fi
  shift
done
"""


def put_slurm(folder, first):
    """Writes the programs; `folder` is to be on the path, `first` its first job.

    Numbers are not to be used again: submitit remembers what became of a job.
    """
    for name, text in {"sbatch": SBATCH, "srun": SRUN, "sacct": SACCT}.items():
        path = folder / name
        text = text.replace("{folder}", str(folder)).replace("{first}", str(first))
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
