// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const TRACE_VIEWER = {
  page: {
    tables: {
      tracks: table(
        'tracks',
        {
          track: 'number',
          host: 'text',
          section: 'text',
          name: 'text',
          kind: 'text',
          n_events: 'number',
          n_depths: 'number',
          is_derived: 'bool',
          order: 'number',
          min_value: 'number',
          max_value: 'number',
          unit: 'text',
        },
        {},
      ),
      boxes: table(
        'boxes',
        {
          track: 'number',
          depth: 'number',
          start_ps: 'number',
          duration_ps: 'number',
          longest_ps: 'number',
          name: 'text',
          family: 'number',
          event: 'number',
          n_merged: 'number',
        },
        {},
      ),
      colors: table(
        'colors',
        {
          color_key: 'number',
        },
        {},
      ),
      counters: table(
        'counters',
        {
          track: 'number',
          time_ps: 'number',
          value: 'number',
        },
        {},
      ),
      steps: table(
        'steps',
        {
          step: 'number',
          host: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          name: 'text',
        },
        {},
      ),
      hosts: table(
        'hosts',
        {
          host: 'text',
          host_index: 'number',
          offset_ps: 'number',
          start_ns: 'text',
          is_aligned: 'bool',
        },
        {},
      ),
      flows: table(
        'flows',
        {
          flow: 'number',
          kind: 'text',
          from_event: 'number',
          from_track: 'number',
          from_ps: 'number',
          to_event: 'number',
          to_track: 'number',
          to_ps: 'number',
        },
        {},
      ),
    },
    scalars: {
      trace_duration_ps: scalar('trace_duration_ps', false),
      start_ps: scalar('start_ps', false),
      end_ps: scalar('end_ps', false),
      n_events: scalar('n_events', false),
      n_events_in_window: scalar('n_events_in_window', false),
      n_flows: scalar('n_flows', true),
      n_marked_steps: scalar('n_marked_steps', false),
      focus_start_ps: scalar('focus_start_ps', true),
      focus_end_ps: scalar('focus_end_ps', true),
    },
  },
  event: {
    tables: {
      about: table(
        'about',
        {
          name: 'text',
          value: 'text',
        },
        {},
      ),
      arguments: table(
        'arguments',
        {
          name: 'text',
          value: 'text',
          shown: 'text',
        },
        {},
      ),
      ancestors: table(
        'ancestors',
        {
          event: 'number',
          name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
        },
        {},
      ),
      flows: table(
        'flows',
        {
          event: 'number',
          track: 'number',
          name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          direction: 'text',
          kind: 'text',
        },
        {},
      ),
      histogram: table(
        'histogram',
        {
          from_ps: 'number',
          to_ps: 'number',
          n: 'number',
        },
        {},
      ),
      links: table(
        'links',
        {
          text: 'text',
          tool: 'text',
          params: 'text',
        },
        {},
      ),
      source_lines: table(
        'source_lines',
        {
          line: 'number',
          code: 'text',
          is_place: 'bool',
        },
        {},
      ),
    },
    scalars: {
      event: scalar('event', false),
      track: scalar('track', false),
      depth: scalar('depth', false),
      start_ps: scalar('start_ps', false),
      duration_ps: scalar('duration_ps', false),
      self_time_ps: scalar('self_time_ps', false),
      n_same_name: scalar('n_same_name', false),
      same_total_ps: scalar('same_total_ps', false),
      same_avg_ps: scalar('same_avg_ps', false),
      same_min_ps: scalar('same_min_ps', false),
      same_max_ps: scalar('same_max_ps', false),
    },
  },
  neighbour: {
    tables: {
      neighbour: table(
        'neighbour',
        {
          event: 'number',
          track: 'number',
          name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          depth: 'number',
        },
        {},
      ),
    },
    scalars: {
    },
  },
  slices: {
    tables: {
      slices: table(
        'slices',
        {
          event: 'number',
          track: 'number',
          name: 'text',
          track_name: 'text',
          host: 'text',
          step: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          self_ps: 'number',
        },
        {
          argument_1: 'text',
          argument_2: 'text',
          argument_3: 'text',
          argument_4: 'text',
          argument_5: 'text',
          argument_6: 'text',
          argument_7: 'text',
          argument_8: 'text',
        },
      ),
    },
    scalars: {
      n_matches: scalar('n_matches', false),
      total_ps: scalar('total_ps', false),
      first: scalar('first', false),
      n_recorded: scalar('n_recorded', false),
      n_derived: scalar('n_derived', false),
      is_derived: scalar('is_derived', false),
    },
  },
  groups: {
    tables: {
      groups: table(
        'groups',
        {
          group: 'text',
          n: 'number',
          total_ps: 'number',
          self_ps: 'number',
          avg_ps: 'number',
          min_ps: 'number',
          max_ps: 'number',
          longest_event: 'number',
          longest_track: 'number',
          longest_start_ps: 'number',
          longest_duration_ps: 'number',
        },
        {},
      ),
    },
    scalars: {
      n_groups: scalar('n_groups', false),
      n_events: scalar('n_events', false),
      total_ps: scalar('total_ps', false),
      self_ps: scalar('self_ps', false),
      range_ps: scalar('range_ps', false),
      n_recorded: scalar('n_recorded', false),
      n_derived: scalar('n_derived', false),
      is_derived: scalar('is_derived', false),
    },
  },
  hits: {
    tables: {
      hits: table(
        'hits',
        {
          box: 'number',
          track: 'number',
          depth: 'number',
          n: 'number',
        },
        {},
      ),
      ruler: table(
        'ruler',
        {
          pixel: 'number',
          n: 'number',
        },
        {},
      ),
    },
    scalars: {
      n_in_window: scalar('n_in_window', false),
      n_matches: scalar('n_matches', false),
      n_boxes: scalar('n_boxes', false),
      pixel_ps: scalar('pixel_ps', false),
      n_recorded: scalar('n_recorded', false),
      n_derived: scalar('n_derived', false),
      is_derived: scalar('is_derived', false),
    },
  },
  utilization: {
    tables: {
      utilization: table(
        'utilization',
        {
          track: 'number',
          host: 'text',
          section: 'text',
          name: 'text',
          is_derived: 'bool',
          busy_ps: 'number',
          busy_fraction: 'number',
        },
        {},
      ),
    },
    scalars: {
      range_ps: scalar('range_ps', false),
    },
  },
  fields: {
    tables: {
      fields: table(
        'fields',
        {
          field: 'text',
          kind: 'text',
          meaning: 'text',
        },
        {},
      ),
    },
    scalars: {
      n_arguments: scalar('n_arguments', false),
    },
  },
  active: {
    tables: {
      active: table(
        'active',
        {
          track: 'number',
        },
        {},
      ),
    },
    scalars: {
    },
  },
  minimap: {
    tables: {
      density: table(
        'density',
        {
          host: 'text',
          section: 'text',
          pixel: 'number',
          busy_fraction: 'number',
        },
        {},
      ),
    },
    scalars: {
      trace_duration_ps: scalar('trace_duration_ps', false),
      pixel_ps: scalar('pixel_ps', false),
      n_pixels: scalar('n_pixels', false),
    },
  },
  chain: {
    tables: {
      chain: table(
        'chain',
        {
          event: 'number',
          track: 'number',
          name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          side: 'text',
          kind: 'text',
          neighbor: 'number',
          distance: 'number',
          gap_ps: 'number',
        },
        {},
      ),
    },
    scalars: {
      n_causes: scalar('n_causes', false),
      n_effects: scalar('n_effects', false),
      is_cut: scalar('is_cut', false),
    },
  },
  compare: {
    tables: {
      compared: table(
        'compared',
        {
          name: 'text',
          track: 'number',
          self_a_ps: 'number',
          self_b_ps: 'number',
          self_difference_ps: 'number',
          total_a_ps: 'number',
          total_b_ps: 'number',
          total_difference_ps: 'number',
          n_a: 'number',
          n_b: 'number',
        },
        {},
      ),
    },
    scalars: {
      length_a_ps: scalar('length_a_ps', false),
      length_b_ps: scalar('length_b_ps', false),
      length_difference_ps: scalar('length_difference_ps', false),
      n_events_a: scalar('n_events_a', false),
      n_events_b: scalar('n_events_b', false),
    },
  },
  dependencies: {
    tables: {
      dependencies: table(
        'dependencies',
        {
          event: 'number',
          track: 'number',
          name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          direction: 'text',
          kind: 'text',
        },
        {},
      ),
    },
    scalars: {
      n_producers: scalar('n_producers', false),
      n_consumers: scalar('n_consumers', false),
    },
  },
  places: {
    tables: {
      places: table(
        'places',
        {
          event: 'number',
          track: 'number',
          name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          depth: 'number',
        },
        {},
      ),
    },
    scalars: {
    },
  },
};
