// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import {  } from '../declared';

export const POD_VIEWER = {
  page: {
    tables: {
    },
    scalars: {
    },
  },
};
