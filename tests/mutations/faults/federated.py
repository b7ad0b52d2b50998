"""Faults in federated."""

from ..fault import Fault
from ..ids import owners, secrets

PRIVACY = {
    "owners of two versions agree": Fault(
        "federated.clients:JointFit.digest",
        "[__version__, *words]",
        "words",
        owners("owners_of_two_versions_do_not_agree"),
    ),
    "an owner's mask has 32 bits": Fault(
        "federated.clients:Owner.__init__",
        "secrets.token_bytes(32)",
        "hashlib.sha256(secrets.token_bytes(4)).digest()",
        secrets("keys_are_what_the_operating_system_gave"),
    ),
    "an owner's mask follows from its position": Fault(
        "federated.clients:Owner.__init__",
        "secrets.token_bytes(32)",
        'hashlib.sha256(b"%d" % position).digest()',
        secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[seed of an owner's own mask]"
        ),
    ),
    "owners have no masks of their own": Fault(
        "federated.clients:Owner.contribute",
        "expand(self._own_seed, share.size)",
        "expand(self._own_seed, share.size) * np.uint64(0)",
        owners("who_comes_late_stays_masked"),
    ),
    "owners share no masks": Fault(
        "federated.clients:Owner.contribute",
        "mask if self.position < other else -mask",
        "mask * np.uint64(0)",
        owners("what_is_sent_is_as_random_numbers"),
    ),
    "owners contribute twice": Fault(
        "federated.clients:Owner.contribute",
        "self._keys is not None",
        "False",
        owners("an_owner_contributes_once"),
    ),
    "an owner need not see its own key": Fault(
        "federated.clients:Owner.contribute",
        "public_keys.get(self.position) != self.public_key",
        "False",
        owners("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "keys are agreed on after rows are read": Fault(
        "federated.clients:Owner.contribute",
        """
        seeds = {other: self._agree(key) for other, key in others.items()}
        self._keys = dict(public_keys)
        share = make_share(self.joint, X)
        """,
        """
        self._keys = dict(public_keys)
        share = make_share(self.joint, X)
        seeds = {other: self._agree(key) for other, key in others.items()}
        """,
        owners("keys_with_which_everybody_has_the_same_secret_are_refused[00000000]"),
    ),
    "owners who stayed are unmasked one by one": Fault(
        "federated.clients:Owner.unmask",
        "set(self._keys) - stayed",
        "set(self._keys) - {self.position}",
        owners("who_comes_late_stays_masked"),
    ),
    "owners unmask a sum of too few": Fault(
        "federated.clients:Owner.unmask",
        "len(stayed) < needed",
        "not stayed",
        owners("more_dropouts_than_agreed_abort_before_unmasking"),
    ),
    "owners unmask twice": Fault(
        "federated.clients:Owner.unmask",
        "self._has_unmasked = True",
        "self._has_unmasked = False",
        owners("who_drops_out_after_the_sum_leaves_it_masked"),
    ),
    "owners unmask sums of who gave no key": Fault(
        "federated.clients:Owner.unmask",
        "self.position not in stayed or not stayed <= set(self._keys) or len(stayed) < needed",
        "self.position not in stayed or len(stayed) < needed",
        owners("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "owners unmask sums that they are not in": Fault(
        "federated.clients:Owner.unmask",
        "self.position not in stayed or not stayed <= set(self._keys) or len(stayed) < needed",
        "not stayed <= set(self._keys) or len(stayed) < needed",
        owners("lists_of_who_stayed_that_are_not_unmasked[stayed3]"),
    ),
    "two owners agree on 32 bits": Fault(
        "federated.clients:Owner._agree",
        "HKDF(SHA256(), 32, salt=None, info=info).derive(secret)",
        "HKDF(SHA256(), 4, salt=None, info=info).derive(secret) * 8",
        secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[seed of a mask of two owners]"
        ),
    ),
    "two owners have the same masks in all joint fits": Fault(
        "federated.clients:Owner._agree",
        '[b"skdpgen pair mask", *both, self.joint.digest.encode()]',
        '[b"skdpgen pair mask", *both]',
        secrets("seeds_of_two_owners_are_known_to_them_alone"),
    ),
    "who gave no key contributes": Fault(
        "federated.clients:Adder.take",
        "contribution.position not in self._taking or contribution.position in self._stayed",
        "contribution.position in self._stayed",
        owners("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "numbers that come late are added": Fault(
        "federated.clients:Adder.take",
        "self._lost is not None",
        "False",
        owners("who_comes_late_stays_masked"),
    ),
    "owners need not agree": Fault(
        "federated.clients:Adder.take",
        "contribution.digest != self.joint.digest",
        "False",
        owners("owners_agree_on_all_that_is_public[other1]"),
    ),
    "the server closes a sum of too few": Fault(
        "federated.clients:Adder.close",
        "len(self._stayed) < sharing.min_samples",
        "not self._stayed",
        owners("the_server_closes_no_sum_of_too_few"),
    ),
    "grids of owners follow from their own rows": Fault(
        "federated.clients:_JointTable.__init__",
        "joint.sharing, joint.n_records",
        "joint.sharing, len(frame) or joint.n_records",
        owners("the_grid_follows_from_the_number_of_all_rows"),
    ),
    "noise of owners follows from a seed": Fault(
        "federated.clients:make_share",
        "clone(joint.generator).set_params(random_state=None, verbose=0)",
        "clone(joint.generator).set_params(verbose=0)",
        owners("a_seed_of_the_generator_seeds_no_noise"),
    ),
    "a mask follows from half of its seed": Fault(
        "federated.clients:expand",
        'int.from_bytes(seed, "little")',
        'int.from_bytes(seed[:16], "little")',
        secrets("each_bit_of_a_key_changes_the_stream[masks]"),
    ),
    "masks have fewer rounds": Fault(
        "federated.clients:expand", "20", "8", secrets("streams_are_those_of_chacha20")
    ),
    "two owners may have one key": Fault(
        "federated.clients:_check_keys",
        "len(set(public_keys.values())) < len(public_keys)",
        "False",
        owners("bad_keys_are_refused_before_a_row_is_read[repeated]"),
    ),
    "few keys are enough": Fault(
        "federated.clients:_check_keys",
        "len(public_keys) < joint.sharing.min_samples",
        "not public_keys",
        owners("bad_keys_are_refused_before_a_row_is_read[of too few]"),
    ),
}
