/**
 * The details of one instruction, and what to do with it: walk there, open a fusion, its computations, other
 * tools.
 */
import type { VNode } from 'preact';
import { exactText, format } from '../../base/units';
import { useEscape } from '../../state/escape';
import { Fact, Ways } from '../card_parts';
import { Place } from '../source';
import type { Node } from './model';

interface DrawerProps {
  node: Node;
  program: string;
  isCenter: boolean;
  isOpened: boolean;
  onWalk: (name: string) => void;
  onOpen: (name: string) => void;
  onText: (name: string) => void;
  onClose: () => void;
}

/** Tools that show the same instruction, with their parameters. */
function Elsewhere({ node, program }: { node: Node; program: string }): VNode {
  const ways = [
    { tool: 'hlo_stats', text: 'Show in HLO stats', params: { program, op: node.name } },
    { tool: 'op_profile', text: 'Show in the op profile', params: { program, op: node.name } },
    { tool: 'roofline_model', text: 'Show in the roofline', params: { program, op: node.name } },
    { tool: 'trace_viewer', text: 'Find on the timeline', params: { q: node.name, qargs: '1' } },
    { tool: 'memory_viewer', text: 'Show its memory', params: { program, op: node.name } },
  ];
  return <Ways ways={ways} />;
}

function Metadata({ node }: { node: Node }): VNode {
  return (
    <>
      {node.opName && (
        <>
          <h3>Framework op</h3>
          <p class="gv-path">{node.opName}</p>
        </>
      )}
      {node.source && (
        <>
          <h3>Source</h3>
          <p class="gv-path">
            <Place place={node.source} />
          </p>
          {node.stack.includes('\n') && (
            <details>
              <summary>Stack</summary>
              <pre>{node.stack}</pre>
            </details>
          )}
        </>
      )}
    </>
  );
}

function Facts({ node }: { node: Node }): VNode {
  return (
    <dl>
      <Fact name="Opcode" value={node.opcode} />
      <Fact name="Kind" value={node.kind} />
      <Fact name="Class" value={node.opClass} />
      <Fact
        name="Time"
        value={node.awaitsTime ? '…' : node.timePs === null ? 'not traced' : format(node.timePs, 'ps')}
        {...(node.timePs === null ? {} : { tip: exactText(node.timePs, 'ps') })}
      />
      {node.timeFraction !== null && (
        <Fact name="Share of the program" value={format(node.timeFraction, 'fraction')} />
      )}
      {node.nOccurrences > 0 && <Fact name="Occurrences" value={node.nOccurrences.toLocaleString('en-US')} />}
      <Fact name="Type" value={node.opType} />
    </dl>
  );
}

export function Drawer({
  node,
  program,
  isCenter,
  isOpened,
  onWalk,
  onOpen,
  onText,
  onClose,
}: DrawerProps): VNode {
  useEscape(onClose);
  return (
    <aside class="gv-drawer" aria-label={`Instruction ${node.name}`}>
      <header>
        <h2>{node.name}</h2>
        <button
          type="button"
          class="button plain small"
          aria-label="Close the details"
          data-tip="Close  Esc"
          onClick={onClose}
        >
          ✕
        </button>
      </header>
      <p class="gv-acts">
        {!isCenter && (
          <button type="button" class="button small" onClick={() => onWalk(node.name)}>
            Walk here
          </button>
        )}
        {node.opcode === 'fusion' && (
          <button type="button" class="button small" onClick={() => onOpen(node.name)}>
            {isOpened ? 'Close the fusion' : 'Open the fusion'}
          </button>
        )}
        <button type="button" class="button small" onClick={() => onText(node.name)}>
          In the text
        </button>
      </p>
      <Facts node={node} />
      <h3>Shape</h3>
      <code>{node.shape}</code>
      <h3>HLO</h3>
      <code>{node.expression}</code>
      {node.calls.length > 0 && (
        <>
          <h3>Runs</h3>
          {node.calls.map((name) => (
            <button key={name} type="button" class="text-link" onClick={() => onWalk(name)}>
              {name}
            </button>
          ))}
        </>
      )}
      <Metadata node={node} />
      <Elsewhere node={node} program={program} />
    </aside>
  );
}
