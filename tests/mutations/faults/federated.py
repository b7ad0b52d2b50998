"""Faults in federated."""

from ..fault import Fault
from ..ids import clients, secrets, sharing

PRIVACY = {
    "shares of who drops out count": Fault(
        "federated.sharing:Sharing.n_shares",
        "self.n_clients - self.n_dropouts",
        "self.n_clients",
        sharing("shares_that_count"),
    ),
    "shares of who colludes count": Fault(
        "federated.sharing:Sharing.n_shares",
        "self.n_clients - self.n_dropouts - self.n_colluding",
        "self.n_clients - self.n_dropouts",
        sharing("shares_that_count"),
    ),
    "a certificate does not say that noise was shared": Fault(
        "federated.sharing:Sharing.cover",
        "replace(plan, releases=((name, shared),))",
        "plan",
        sharing("shares_that_count"),
    ),
    "the certificate does not say that the server is trusted": Fault(
        "federated.sharing:Sharing.assumptions",
        """
        (
            "the server is trusted to follow the protocol: it distributes the clients' own "
            "public keys and sends all clients the same list of survivors; one that does not can "
            "read the sum of a single client"
        )
        """,
        """
        (
            "the server follows the protocol: it distributes the clients' own public keys and "
            "sends all clients the same list of survivors; one that does not can read the sum of "
            "a single client"
        )
        """,
        clients("a_server_that_lies_about_survivors_is_trusted_not_to"),
    ),
    "clients of two versions agree": Fault(
        "federated.fit:FederatedFit.digest",
        "[__version__, *words]",
        "words",
        clients("clients_of_two_versions_do_not_agree"),
    ),
    "a client's mask has 32 bits": Fault(
        "federated.secure_aggregation:Client.__init__",
        "secrets.token_bytes(32)",
        "secrets.token_bytes(4) * 8",
        secrets("keys_are_what_the_operating_system_gave"),
    ),
    "a client's mask follows from its position": Fault(
        "federated.secure_aggregation:Client.__init__",
        "secrets.token_bytes(32)",
        'b"%032d" % position',
        secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[seed of a client's own mask]"
        ),
    ),
    "clients have no masks of their own": Fault(
        "federated.secure_aggregation:Client.make_update",
        "expand(self._own_seed, share.size)",
        "expand(self._own_seed, share.size) * np.uint64(0)",
        clients("who_comes_late_stays_masked"),
    ),
    "clients share no masks": Fault(
        "federated.secure_aggregation:Client.make_update",
        "mask if self.position < other else -mask",
        "mask * np.uint64(0)",
        clients("messages_look_like_random_numbers"),
    ),
    "clients contribute twice": Fault(
        "federated.secure_aggregation:Client.make_update",
        "self._keys is not None",
        "False",
        clients("a_client_contributes_once"),
    ),
    "a client need not see its own key": Fault(
        "federated.secure_aggregation:Client.make_update",
        "public_keys.get(self.position) != self.public_key",
        "False",
        clients("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "keys are agreed on after rows are read": Fault(
        "federated.secure_aggregation:Client.make_update",
        """
        seeds = {other: self._agree(key) for other, key in others.items()}
        self._keys = dict(public_keys)
        share = make_share(self.agreed, X)
        """,
        """
        self._keys = dict(public_keys)
        share = make_share(self.agreed, X)
        seeds = {other: self._agree(key) for other, key in others.items()}
        """,
        clients("keys_with_which_everybody_has_the_same_secret_are_refused[00000000]"),
    ),
    "clients who stayed are unmasked one by one": Fault(
        "federated.secure_aggregation:Client.unmask",
        "set(self._keys) - survivors",
        "set(self._keys) - {self.position}",
        clients("who_comes_late_stays_masked"),
    ),
    "clients unmask a sum of too few": Fault(
        "federated.secure_aggregation:Client.unmask",
        "len(survivors) < needed",
        "not survivors",
        clients("more_dropouts_than_agreed_abort_before_unmasking"),
    ),
    "clients unmask twice": Fault(
        "federated.secure_aggregation:Client.unmask",
        "self._has_unmasked = True",
        "self._has_unmasked = False",
        clients("who_drops_out_after_the_sum_leaves_it_masked"),
    ),
    "clients unmask sums of who gave no key": Fault(
        "federated.secure_aggregation:Client.unmask",
        "self.position in survivors and survivors <= set(self._keys)",
        "self.position in survivors",
        clients("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "clients unmask sums that they are not in": Fault(
        "federated.secure_aggregation:Client.unmask",
        "self.position in survivors and survivors <= set(self._keys)",
        "survivors <= set(self._keys)",
        clients("lists_of_survivors_that_are_not_unmasked[survivors3]"),
    ),
    "two clients agree on 32 bits": Fault(
        "federated.secure_aggregation:Client._agree",
        "HKDF(SHA256(), 32, salt=None, info=info).derive(secret)",
        "HKDF(SHA256(), 4, salt=None, info=info).derive(secret) * 8",
        secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[seed of a mask of two clients]"
        ),
    ),
    "two clients have the same masks in all federated fits": Fault(
        "federated.secure_aggregation:Client._agree",
        '[b"skdpgen pair mask", *both, self.agreed.digest.encode()]',
        '[b"skdpgen pair mask", *both]',
        secrets("seeds_of_two_owners_are_known_to_them_alone"),
    ),
    "who gave no key contributes": Fault(
        "federated.secure_aggregation:Aggregator.add",
        "update.position not in self._participants or update.position in self._survivors",
        "update.position in self._survivors",
        clients("who_gave_no_key_is_as_dropped_out[keyless1]"),
    ),
    "numbers that come late are added": Fault(
        "federated.secure_aggregation:Aggregator.add",
        "self._dropouts is not None",
        "False",
        clients("who_comes_late_stays_masked"),
    ),
    "clients need not agree": Fault(
        "federated.secure_aggregation:Aggregator.add",
        "update.digest != self.agreed.digest",
        "False",
        clients("clients_agree_on_all_that_is_public[other1]"),
    ),
    "the server closes a sum of too few": Fault(
        "federated.secure_aggregation:Aggregator.close",
        "len(self._survivors) < sharing.min_clients",
        "not self._survivors",
        clients("the_server_closes_no_sum_of_too_few"),
    ),
    "grids of clients follow from their own rows": Fault(
        "federated.fit:_FederatedTable.__init__",
        "agreed.sharing, agreed.n_records",
        "agreed.sharing, len(frame) or agreed.n_records",
        clients("the_grid_follows_from_the_number_of_all_rows"),
    ),
    "noise of clients follows from a seed": Fault(
        "federated.fit:make_share",
        "clone(agreed.generator).set_params(random_state=None, verbose=0)",
        "clone(agreed.generator).set_params(verbose=0)",
        clients("a_seed_of_the_generator_seeds_no_noise"),
    ),
    "a mask follows from half of its seed": Fault(
        "federated.secure_aggregation:expand",
        'int.from_bytes(seed, "little")',
        'int.from_bytes(seed[:16], "little")',
        secrets("each_bit_of_a_key_changes_the_stream[masks]"),
    ),
    "masks have fewer rounds": Fault(
        "federated.secure_aggregation:expand", "20", "8", secrets("streams_are_those_of_chacha20")
    ),
    "two clients may have one key": Fault(
        "federated.secure_aggregation:_check_keys",
        "len(set(public_keys.values())) < len(public_keys)",
        "False",
        clients("bad_keys_are_refused_before_a_row_is_read[repeated]"),
    ),
    "few keys are enough": Fault(
        "federated.secure_aggregation:_check_keys",
        "len(public_keys) < agreed.sharing.min_clients",
        "not public_keys",
        clients("bad_keys_are_refused_before_a_row_is_read[of too few]"),
    ),
}
