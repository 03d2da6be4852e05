/** Requests the contents of open fusions, each once, from the details of the operation. */
import { useEffect, useState } from 'preact/hooks';
import { fetchPayload } from '../../api/client';
import type { ToolProps } from '../tool';
import { insideOf, type Inside, type OpNode } from './model';

/** Contents by row of the tree; a fusion whose contents are not known (yet) is missing. */
export function useInside(
  fusions: readonly OpNode[],
  tree: unknown,
  { run, hosts }: Pick<ToolProps, 'run' | 'hosts'>,
): ReadonlyMap<number, readonly Inside[]> {
  const [loaded, setLoaded] = useState<{ tree: unknown; contents: ReadonlyMap<number, readonly Inside[]> }>({
    tree,
    contents: new Map(),
  });
  const contents = loaded.tree === tree ? loaded.contents : new Map<number, readonly Inside[]>();
  const missing = fusions.filter(({ row }) => !contents.has(row));
  useEffect(() => {
    if (!missing.length) return;
    const abort = new AbortController();
    void Promise.all(
      missing.map(async ({ row, program, name }): Promise<[number, Inside[]]> => {
        try {
          const payload = await fetchPayload(
            { tool: 'op_profile', question: 'op', run, hosts, params: { program, op: name } },
            'json',
            abort.signal,
          );
          return [row, insideOf(payload)];
        } catch {
          // The card of the operation reports the error; the tree goes on without its contents.
          return [row, []];
        }
      }),
    ).then((answers) => {
      if (!abort.signal.aborted)
        setLoaded((last) => ({
          tree,
          contents: new Map([...(last.tree === tree ? last.contents : []), ...answers]),
        }));
    });
    return () => abort.abort();
  }, [tree, missing.map(({ row }) => row).join('.')]);
  return contents;
}
