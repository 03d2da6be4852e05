/** The parameters that choose steps and threads: those that questions about one function and files also take. */
import { serverParams, type ToolProps } from '../tool';

export function selectionParams(
  info: ToolProps['info'],
  params: ToolProps['params'],
): Record<string, string> {
  const known = serverParams(info, params);
  return Object.fromEntries(Object.entries(known).filter(([name]) => name === 'steps' || name === 'threads'));
}
