// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import {} from '../declared';

export const INPUT_PIPELINE_ANALYZER = {
  page: {
    tables: {},
    scalars: {},
  },
};
