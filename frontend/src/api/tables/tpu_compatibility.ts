// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import {  } from '../declared';

export const TPU_COMPATIBILITY = {
  page: {
    tables: {
    },
    scalars: {
    },
  },
};
