/** What every tool's view is given, and how a tool reaches another page. */
import type { ToolInfo } from '../api/types';

export interface ToolProps {
  run: string;
  /** The hosts to show; empty: the server's default. */
  hosts: string[];
  /** The tool's own part of the URL. */
  params: Readonly<Record<string, string>>;
  /** Changes the tool's part of the URL: `push` for a step that Back undoes, `replace` for a stream of small changes. */
  setParams(change: Record<string, string | undefined>, how: 'push' | 'replace'): void;
  info: ToolInfo;
}
