/** What depends on the step, the measure or the channel, requested separately from the page. */
import { fetchPayload, payloadUrl } from '../../api/client';
import type { Payload } from '../../api/types';
import { useLoaded, type Loaded } from '../../state/payload';
import type { ToolProps } from '../tool';

/**
 * The payload that depends on the step (the cores, all channels), on the measure (the cells), or on the
 * channel (its steps), requested separately and kept while the next one loads; null: none yet.
 */
export function useDetail(
  { info, run, hosts }: Pick<ToolProps, 'info' | 'run' | 'hosts'>,
  question: 'cores' | 'cells' | 'channels' | 'channel',
  params: Record<string, string> | null,
  format: 'json' | 'columns',
  keepKey: string,
): Loaded<Payload> {
  const query = { tool: info.name, question, run, hosts, params: params ?? {} };
  const url = params ? payloadUrl(query, format) : '';
  return useLoaded(url, `${run}\n${keepKey}`, (abort) => fetchPayload(query, format, abort));
}
