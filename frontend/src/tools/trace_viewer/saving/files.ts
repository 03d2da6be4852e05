/** Files of the trace: saved on disk, or handed to Perfetto; and what to say meanwhile. */

import { useSignal, type Signal } from '@preact/signals';
import { fetchFile, type ToolParams } from '../../../api/client';
import { saveBlob } from '../../../base/clipboard';
import { asApiError } from '../../../state/payload';
import { openInPerfetto, PerfettoAbsent } from './perfetto';

export function fileName(run: string, part: string): string {
  return `${run}_${part}`.replace(/[^\w.-]+/g, '_');
}

interface News {
  readonly text: string;
  readonly isError: boolean;
}

interface Files {
  /** null: nothing is being made, and the last file was. */
  readonly state: Signal<News | null>;
  saveTrace(params: ToolParams, part: string): Promise<void>;
  saveEvents(params: ToolParams, part: string): Promise<void>;
  openTrace(params: ToolParams, part: string): Promise<void>;
}

export function useFiles(run: string, hosts: readonly string[]): Files {
  const state = useSignal<News | null>(null);
  const during = async (text: string, make: () => Promise<void>): Promise<void> => {
    state.value = { text, isError: false };
    try {
      await make();
      state.value = null;
    } catch (error) {
      const { message, remedy } = asApiError(error);
      const sentence = error instanceof PerfettoAbsent ? error.message : `${message} ${remedy}`;
      state.value = { text: sentence, isError: true };
    }
  };
  const fetched = (params: ToolParams, format: 'trace' | 'events'): Promise<Blob> =>
    fetchFile({ tool: 'trace_viewer', run, hosts, params }, format);
  return {
    state,
    saveTrace: (params, part) =>
      during('Making the file…', async () => {
        const blob = await fetched(params, 'trace');
        const isZipped = new Uint8Array(await blob.slice(0, 2).arrayBuffer())[0] === 0x1f;
        saveBlob(blob, `${fileName(run, part)}.trace.json${isZipped ? '.gz' : ''}`);
      }),
    saveEvents: (params, part) =>
      during('Making the file…', async () => {
        saveBlob(await fetched(params, 'events'), `${fileName(run, part)}.events.csv`);
      }),
    openTrace: (params, part) =>
      during('Opening Perfetto…', () =>
        openInPerfetto(async () => {
          const blob = await fetched(params, 'trace');
          const name = `${fileName(run, part)}.trace.json.gz`;
          return { title: run, fileName: name, buffer: await blob.arrayBuffer() };
        }),
      ),
  };
}
