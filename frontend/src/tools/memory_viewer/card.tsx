/** The details of one buffer: identity, cost, lifetime, origin, and links to it in other tools. */
import type { VNode } from 'preact';
import { exactText, format, threeDigits } from '../../base/units';
import { Fact, Ways } from '../card_parts';
import { Place } from '../source';
import type { Buffer } from './model';

function Bytes({ name, bytes }: { name: string; bytes: number }): VNode {
  return <Fact name={name} value={format(bytes, 'bytes')} tip={exactText(bytes, 'bytes')} />;
}

function Source({ buffer }: { buffer: Buffer }): VNode | null {
  if (!buffer.source) return null;
  return (
    <>
      <h4>Source</h4>
      <p class="mv-path">
        <Place place={buffer.source} />
      </p>
      {buffer.stack.includes('\n') && (
        <details>
          <summary>Stack</summary>
          <ol class="mv-stack">
            {buffer.stack.split('\n').map((place, i) => (
              <li key={i}>{place}</li>
            ))}
          </ol>
        </details>
      )}
    </>
  );
}

/** The same instruction in other tools. */
function Elsewhere({ op, program }: { op: string; program: string }): VNode | null {
  if (!op) return null;
  const ways = [
    { tool: 'graph_viewer', text: 'Show in the graph', params: { program, op } },
    { tool: 'hlo_stats', text: 'Show its time in HLO stats', params: { program, op } },
    { tool: 'op_profile', text: 'Show in the op profile', params: { program, op } },
    { tool: 'trace_viewer', text: 'Find on the timeline', params: { q: op, qargs: '1' } },
  ];
  return <Ways ways={ways} />;
}

export function Card({
  buffer,
  program,
  isKept,
  onClear,
}: {
  buffer: Buffer | null;
  program: string;
  isKept: boolean;
  onClear: () => void;
}): VNode {
  if (!buffer) {
    return (
      <aside class="mv-card" aria-label="Buffer">
        <p class="muted">Hover over a buffer for its details and lifetime; click to pin it.</p>
      </aside>
    );
  }
  const extra = buffer.sizeBytes - buffer.unpaddedBytes;
  return (
    <aside class="mv-card" aria-label={`Buffer ${buffer.instruction}`}>
      <header>
        <h3>{buffer.instruction || 'Unknown instruction'}</h3>
        {isKept && (
          <button
            type="button"
            class="button plain small"
            aria-label="Unpin this buffer"
            data-tip="Unpin"
            onClick={onClear}
          >
            ✕
          </button>
        )}
      </header>
      <code>{buffer.shape}</code>
      <dl>
        <Bytes name="Size" bytes={buffer.sizeBytes} />
        <Bytes name="Unpadded" bytes={buffer.unpaddedBytes} />
        <Fact name="Expansion" value={`${threeDigits(buffer.expansion)}×`} />
        <Bytes name="Extra memory" bytes={Math.max(0, extra)} />
        {extra > 0 && <Fact name="Padded" value={buffer.padded} />}
        <Fact name="Allocation" value={buffer.category} />
        <Fact name="Opcode" value={buffer.opcode} />
        <Fact
          name="Steps"
          value={
            buffer.category === 'Temporary'
              ? `${buffer.first.toLocaleString('en-US')} – ${buffer.last.toLocaleString('en-US')}`
              : 'throughout'
          }
        />
        {buffer.offsetBytes !== null && <Bytes name="Offset" bytes={buffer.offsetBytes} />}
        <Fact name="Buffer" value={String(buffer.id)} />
      </dl>
      {buffer.opName && (
        <>
          <h4>Framework op</h4>
          <p class="mv-path">{buffer.opName}</p>
        </>
      )}
      <Source buffer={buffer} />
      <Elsewhere op={buffer.instruction} program={program} />
    </aside>
  );
}
