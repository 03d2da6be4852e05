/** The state of a page whose run is being read: what it waits for, and the progress. */
import type { VNode } from 'preact';
import { useReading } from '../state/progress';
import { Loading } from '../widgets/states';

export function Reading({ run, ...loading }: { run: string; what: string; bones?: number[] }): VNode {
  return <Loading {...loading} progress={useReading(run)} />;
}
